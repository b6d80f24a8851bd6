// Gives the process the name of a host, for nodes of a cluster that run on one machine. Loaded with --import.
import os from 'node:os'
import { syncBuiltinESMExports } from 'node:module'

const { PICTURED_HOST: name = 'node' } = process.env
os.hostname = () => name
syncBuiltinESMExports()
