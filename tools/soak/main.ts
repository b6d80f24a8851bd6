const HELP = `npm run soak -- [subject] [options]

  messages               long polls and senders at once (the default)
  agent-streams          agents' streams: slow readers, many idle ones, clients that disconnect
  key-rotation           keys of tokens that rotate under load
  certificate-rotation   certificates that are replaced under load
  idle-connections       thousands of idle connections
  webhooks               ten thousand webhook subscriptions, and three endpoints that fail

Each lists its options with --help, and exits with 1 if a check failed.
`

const SUBJECTS: ReadonlyMap<string, () => Promise<unknown>> = new Map([
  ['messages', () => import('./messages-main.ts')],
  ['agent-streams', () => import('./agent-streams.ts')],
  ['key-rotation', () => import('./key-rotation-main.ts')],
  ['certificate-rotation', () => import('./certificate-rotation-main.ts')],
  ['idle-connections', () => import('./idle-connections-main.ts')],
  ['webhooks', () => import('./webhooks-main.ts')],
])

const [first = ''] = process.argv.slice(2)
const named = first !== '' && !first.startsWith('-')
const subject = SUBJECTS.get(named ? first : 'messages')
if (subject === undefined || first === '--help') {
  process.stdout.write(HELP)
  process.exitCode = first === '--help' ? 0 : 2
} else {
  // The other arguments belong to the subject.
  if (named) process.argv.splice(2, 1)
  await subject()
}
