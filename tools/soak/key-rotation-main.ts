import { parseArgs } from 'node:util'

import { exitOnSignals } from '../harness/signals.ts'
import { rotateKeys } from './key-rotation.ts'
import { rotationProblems, rotationText } from './rotation.ts'

const HELP = `npm run soak -- key-rotation [options]

Keys of tokens rotate while clients call the real server with tokens that they renew: a new key is published before it
signs, an old one withdrawn when its last token has expired. Exits with 1 if a request failed.

  --seconds N   duration (default 30)
  --clients N   concurrent clients, each with its own connection (default 64)
  --interval N  milliseconds from one rotation to the next (default 1000)
  --source S    the source of the server's keys: url or file (default: both in sequence)
`

exitOnSignals()
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    clients: { type: 'string', default: '64' },
    interval: { type: 'string', default: '1000' },
    source: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(HELP)
} else {
  for (const source of ['url', 'file'] as const) {
    if (values.source !== undefined && values.source !== source) continue
    const report = await rotateKeys({
      seconds: Number(values.seconds),
      clients: Number(values.clients),
      intervalMs: Number(values.interval),
      source,
    })
    process.stdout.write(`keys from a ${source}, ${values.clients} clients: ${rotationText(report)}\n`)
    for (const problem of rotationProblems(report)) {
      process.stdout.write(`! ${problem}\n`)
      process.exitCode = 1
    }
  }
}
