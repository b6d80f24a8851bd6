import { exitOnSignals } from '@signalbox/testkit/measured-process'

const HELP = `npm run soak -- [subject] [options]

  messages               long polls and senders at once (the default)
  agent-streams          agents' streams: slow readers, many idle ones, clients that disconnect
  key-rotation           keys of tokens that rotate under load
  certificate-rotation   certificates that are replaced under load
  idle-connections       thousands of idle connections
  groups                 the order of groups through kills, and how groups are served
  webhooks               ten thousand webhook subscriptions, and three endpoints that fail

Each lists its options with --help, and exits with 1 if a check failed.
`

type Main = (args: string[]) => Promise<void>

const SUBJECTS: ReadonlyMap<string, () => Promise<Main>> = new Map([
  ['messages', async () => (await import('./messages.ts')).main],
  ['agent-streams', async () => (await import('./agent-streams.ts')).main],
  ['key-rotation', async () => (await import('./rotation.ts')).keyRotation],
  ['certificate-rotation', async () => (await import('./rotation.ts')).certificateRotation],
  ['idle-connections', async () => (await import('./idle-connections.ts')).main],
  ['groups', async () => (await import('./groups.ts')).main],
  ['webhooks', async () => (await import('./webhooks.ts')).main],
])

const [first = '', ...rest] = process.argv.slice(2)
const named = first !== '' && !first.startsWith('-')
const subject = SUBJECTS.get(named ? first : 'messages')
if (subject === undefined || first === '--help') {
  process.stdout.write(HELP)
  process.exitCode = first === '--help' ? 0 : 2
} else {
  exitOnSignals()
  const main = await subject()
  await main(named ? rest : process.argv.slice(2))
}
