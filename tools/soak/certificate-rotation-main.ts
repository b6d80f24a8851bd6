import { parseArgs } from 'node:util'

import { exitOnSignals } from '../harness/signals.ts'
import { rotateCertificates } from './certificate-rotation.ts'
import { rotationProblems, rotationText } from './rotation.ts'

const HELP = `npm run soak -- certificate-rotation [options]

Certificates are replaced while clients call the real server over TLS, half of them on a new connection for each request.
Exits with 1 if a request failed, or if the server did not load a certificate.

  --seconds N   duration (default 30)
  --clients N   concurrent clients (default 64)
  --interval N  milliseconds from one loaded certificate to the next (default 500)
`

exitOnSignals()
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    clients: { type: 'string', default: '64' },
    interval: { type: 'string', default: '500' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(HELP)
} else {
  const report = await rotateCertificates({
    seconds: Number(values.seconds),
    clients: Number(values.clients),
    intervalMs: Number(values.interval),
  })
  process.stdout.write(`certificates, ${values.clients} clients: ${rotationText(report)}\n`)
  for (const problem of rotationProblems(report)) {
    process.stdout.write(`! ${problem}\n`)
    process.exitCode = 1
  }
}
