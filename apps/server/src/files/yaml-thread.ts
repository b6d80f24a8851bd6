import { parentPort, workerData } from 'node:worker_threads'

import { parseYaml } from './yaml.ts'

/** The entry of a worker thread that parses one YAML text, its `workerData`, and posts the result. */
const port = parentPort
if (port && typeof workerData === 'string') port.postMessage(parseYaml(workerData))
