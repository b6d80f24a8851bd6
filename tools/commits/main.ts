import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

// By its path, because CI runs this program without an installation.
import { commandLine, text } from '../../packages/testkit/src/command-line.ts'
import { problemsOfCommit, SCOPES, TYPES } from './check.ts'

const { values, positionals } = commandLine(
  {
    usage: 'npm run commitlint -- FROM..TO, or npm run commitlint -- --file FILE',
    about: `Checks the messages of new commits: type(scope): imperative subject. Exits with 1 if a message has a problem.`,
    end: `types: ${TYPES.join(', ')}\nscopes: ${SCOPES.join(', ')}`,
  },
  { file: text('FILE', 'checks one message, as a commit-msg hook does') },
)
const [range = ''] = positionals
if (values.file === undefined) {
  if (!range.includes('..')) throw new Error(`the range is "${range}"; it must be FROM..TO`)
  const log = execFileSync('git', ['log', '--no-merges', '--format=%h%x00%B%x01', range], { encoding: 'utf8' })
  const commits = log.split('\u0001').filter((commit) => commit.trim() !== '')
  for (const commit of commits) {
    const [hash = '', message = ''] = commit.trim().split('\0')
    report(hash, message)
  }
  console.log(`commitlint: ${commits.length} commits`)
} else {
  // Git writes comments into the file of the message.
  report('message', readFileSync(values.file, 'utf8').replaceAll(/^#.*\n?/gm, ''))
}

function report(hash: string, message: string): void {
  const problems = problemsOfCommit(message.trim())
  if (problems.length === 0) return
  process.exitCode = 1
  console.error(`${hash} ${message.split('\n', 1)[0]}`)
  for (const problem of problems) console.error(`  ${problem}`)
}
