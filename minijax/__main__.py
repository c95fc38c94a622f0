"""`python -m minijax`: versions, devices, the folder of compiled programs, and where to read on."""

from minijax.environment import installation_summary

if __name__ == "__main__":
    print(installation_summary())
