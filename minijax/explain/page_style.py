"""The style and the script of the pages of `explain`."""

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
:root{color-scheme:light;--bg:#fff;--fg:#1c2024;--dim:#6b7280;--line:#d9dde3;--on:#fff0b3;--pin:#ffe08a;--jvp:#0b7285;
--transpose:#9c36b5;--vmap:#b35c00;--pane:#fafbfc}
@media(prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;--bg:#15181c;--fg:#e4e7eb;
--dim:#8b949e;--line:#30363d;--on:#4d4419;--pin:#6b5d16;--jvp:#4dc4d8;--transpose:#da8aef;
--vmap:#f0a35e;--pane:#1b1f24}}
:root[data-theme=dark]{color-scheme:dark;--bg:#15181c;--fg:#e4e7eb;--dim:#8b949e;--line:#30363d;--on:#4d4419;
--pin:#6b5d16;--jvp:#4dc4d8;--transpose:#da8aef;--vmap:#f0a35e;--pane:#1b1f24}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:14px/1.45 system-ui,sans-serif}
header{position:sticky;top:0;z-index:1;display:flex;flex-wrap:wrap;gap:.3em 1.2em;align-items:center;
padding:.5em 1em;background:var(--bg);border-bottom:1px solid var(--line)}
h1{font-size:1.1em;margin:0}
h2{font-size:1em;margin:0;padding:.5em .8em;border-bottom:1px solid var(--line)}
.legend{display:flex;gap:.9em;margin:0;padding:0;list-style:none;color:var(--dim);font-size:.9em}
.legend li{border-left:3px solid var(--line);padding-left:.4em}
.jvp{--t:var(--jvp)}.transpose{--t:var(--transpose)}.vmap{--t:var(--vmap)}
.legend .jvp,.legend .transpose,.legend .vmap{border-color:var(--t)}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(36em,100%),1fr));gap:.7em;padding:.7em}
section{min-width:0;container-type:inline-size;background:var(--pane);border:1px solid var(--line);border-radius:6px;overflow:hidden}
.code{overflow:auto;padding:.4em 0 .6em;font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace}
.l{display:flex;gap:1.2em;padding:0 0 0 calc(.8em + var(--d,0)*1.3em);
border-left:3px solid var(--t,transparent);width:max-content;min-width:100%}
.l code{white-space:pre;font:inherit;flex:1}
.l b{color:var(--t,inherit)}
.l i,.l em{color:var(--dim);font-style:normal}
.l .n{position:sticky;right:0;display:flex;gap:1.2em;padding:0 .8em;background:var(--pane)}
.l.on .n,.l.pin .n{background:inherit}
.l em{white-space:nowrap;font-size:.92em}
.l em.m{color:var(--t,var(--dim))}
@container(max-width:44em){.l em.w,.l .n:not(:has(.m,.v)){display:none}}
@container(max-width:30em){.l .n{display:none}}
summary.l{cursor:pointer;list-style:none}
summary.l::before{content:"▸";width:.7em;margin:0 -1em 0 -.2em;color:var(--dim)}
details[open]>summary.l::before{content:"▾"}
.on{background:var(--on)}.pin{background:var(--pin)}
.tables{overflow:auto;padding:.6em .8em}
table{border-collapse:collapse;font-size:.9em;margin-bottom:1em}
caption{text-align:left;padding-bottom:.4em;color:var(--dim)}
td,th{padding:.1em .8em .1em 0;text-align:left;border-bottom:1px solid var(--line)}
nav{display:flex;flex-wrap:wrap;gap:.6em;align-items:center;margin-left:auto}
nav input{width:14em}
nav button,nav select{font:inherit;color:inherit;background:var(--pane);border:1px solid var(--line);
border-radius:4px;padding:.1em .6em}
.js:not(.all){display:flex;flex-direction:column;height:100vh}
.js main{grid-template-columns:minmax(16em,.8fr) repeat(2,minmax(0,1.3fr));flex:1;min-height:0}
.js.all main{grid-template-columns:repeat(auto-fit,minmax(min(36em,100%),1fr))}
.js section{display:none;flex-direction:column}
.js.all section,.js section.shown{display:flex}
.js:not(.all) section .code,.js:not(.all) section .tables{flex:1}
@media(max-width:900px){.js main{grid-template-columns:1fr}.js:not(.all){height:auto}}
"""

SCRIPT = """
(()=>{
const d=document,root=d.documentElement,panes=[...d.querySelectorAll('section')],last=panes.length-2;
const byLine={};let pinned=null,at=0,cursor=-1;
for(const l of d.querySelectorAll('[data-k]'))(byLine[l.dataset.k]??=[]).push(l);
const light=(k,on,c)=>(byLine[k]||[]).forEach(l=>l.classList.toggle(c,on));
const key=e=>{const l=e.target.closest&&e.target.closest('[data-k]');return l&&l.dataset.k};
const show=c=>{for(const p of panes){const l=p.querySelector('.'+c);
if(l&&p.offsetParent){const b=p.querySelector('.code'),r=l.getBoundingClientRect(),q=b.getBoundingClientRect();
if(r.top<q.top||r.bottom>q.bottom)b.scrollTop+=r.top-q.top-q.height/3}}};
d.addEventListener('mouseover',e=>{const k=key(e);if(k)light(k,true,'on')});
d.addEventListener('mouseout',e=>{const k=key(e);if(k)light(k,false,'on')});
const pin=k=>{if(pinned)light(pinned,false,'pin');pinned=k===pinned?null:k;
if(pinned){light(pinned,true,'pin');show('pin')}};
d.addEventListener('click',e=>{const k=key(e);if(k&&!e.target.closest('summary'))pin(k)});
const nav=d.createElement('nav');
nav.innerHTML='<label>stage <input type="range" min="1" max="'+last+'" value="1" aria-label="stage"></label>'+
'<select aria-label="stage by name"></select>'+
'<button data-a="all">all</button><button data-a="fold">fold</button><button data-a="theme">light/dark</button>'+
'<small>← → stage · j k line · a all · f fold · t theme</small>';
d.querySelector('header').append(nav);
const slider=nav.querySelector('input'),menu=nav.querySelector('select');
panes.forEach((p,n)=>{if(n&&n<=last)menu.add(new Option(p.querySelector('h2').textContent,n))});
const go=n=>{at=Math.max(1,Math.min(last,n));slider.value=at;menu.value=at;
panes.forEach((p,m)=>p.classList.toggle('shown',m===0||m===at||m===at+1));
try{history.replaceState(null,'','#stage='+at)}catch(e){}if(pinned)show('pin')};
slider.addEventListener('input',()=>go(+slider.value));
menu.addEventListener('change',()=>go(+menu.value));
const lines=()=>Object.keys(byLine);
const acts={all:()=>d.body.classList.toggle('all'),
fold:()=>{const all=[...d.querySelectorAll('details details')],open=all.some(x=>x.open);
all.forEach(x=>x.open=!open)},
theme:()=>{const dark=root.dataset.theme?root.dataset.theme==='dark':matchMedia('(prefers-color-scheme:dark)').matches;
root.dataset.theme=dark?'light':'dark'}};
nav.addEventListener('click',e=>{const a=e.target.dataset&&e.target.dataset.a;if(a)acts[a]()});
d.addEventListener('keydown',e=>{if(e.ctrlKey||e.metaKey||e.altKey||/INPUT|SELECT/.test(e.target.tagName))return;
const move=n=>{const all=lines();if(all.length){cursor=(cursor+n+all.length)%all.length;pinned=all[cursor]===pinned?null:pinned;pin(all[cursor])}};
const f={ArrowRight:()=>go(at+1),ArrowLeft:()=>go(at-1),Home:()=>go(1),End:()=>go(last),
a:acts.all,f:acts.fold,t:acts.theme,j:()=>move(1),k:()=>move(-1)}[e.key];
if(f){f();e.preventDefault()}});
d.body.classList.add('js');
const h=/^#stage=(\\d+)$/.exec(location.hash);go(h?+h[1]:1);
})();
"""
