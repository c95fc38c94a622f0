"""Valid arguments by the names of parameters, for functions that no table lists."""

PARAMETERS = {
    name: text
    for line in """
x a b y arr ary x1 x2 array values value val v data z ar1 ar2 images image obj logits labels input = F
operand lhs rhs m A mat M B = SQ
p p1 p2 a1 a2 c q d = F
args operands *args *arys *arrays arrays xs = F
fun f func callback fn gen = (lambda x: x)
key = KEY
seed = 0
shape new_sizes sizes dimensions reps = (2, 3)
n N k size num length nin nout order count d1 = 2
dtype = np.float32
axis axes dimension = 0
tree pytree prefix_tree full_tree = TREE
treedef = TREEDEF
axis_name name = 'x'
mean mu loc = F
scale sigma df = F
kappa lmbda lam alpha beta = F
sharding = SHARDING
mesh = MESH
aval = AVAL
start = 0
stop = 2
ref = REF
index = 0
segment_ids = I
indices = I
start_indices = (0,)
keys = KEYS
step_size = 0.1
event = '/a'
condition = B
cov = SQ
indices_or_sections = 1
devices = jax.devices()
element = F
prim primitive = lax.sin_p
jaxpr = JAXPR
params = {}
decay_steps = 10
nodetype = Plain
fill_value = 1.0
deg ord = 1
""".strip().splitlines()
    for names, text in [line.split(" = ")]
    for name in names.split()
}

# Functions whose call by these names is itself wrong.
UNSURE = frozenset([])
