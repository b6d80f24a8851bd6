const HELP = `npm run soak -- [subject] [options]

  messages               long polls and senders at once (the default)
  agent-streams          agents' streams: slow readers, many idle ones, clients that go away
  key-rotation           keys of tokens that rotate under load
  certificate-rotation   certificates that are replaced under load
  idle-connections       thousands of connections that do nothing

Each tells its options with --help, and exits with 1 when what it looks after did not hold.
`

const SUBJECTS: ReadonlyMap<string, () => Promise<unknown>> = new Map([
  ['messages', () => import('./messages-main.ts')],
  ['agent-streams', () => import('./agent-streams.ts')],
  ['key-rotation', () => import('./key-rotation-main.ts')],
  ['certificate-rotation', () => import('./certificate-rotation-main.ts')],
  ['idle-connections', () => import('./idle-connections-main.ts')],
])

const [first = ''] = process.argv.slice(2)
const named = first !== '' && !first.startsWith('-')
const subject = SUBJECTS.get(named ? first : 'messages')
if (subject === undefined || first === '--help') {
  process.stdout.write(HELP)
  process.exitCode = first === '--help' ? 0 : 2
} else {
  // What is left is the subject's own.
  if (named) process.argv.splice(2, 1)
  await subject()
}
