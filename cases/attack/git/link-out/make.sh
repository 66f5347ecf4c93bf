# Links that lead out of the clone, and into its data.
entry 120000 outside '/etc'
entry 120000 above '../../..'
entry 120000 hooks '.git/hooks'
