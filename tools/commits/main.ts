import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { problemsOfCommit, SCOPES, TYPES } from './check.ts'

const HELP = `npm run commitlint -- FROM..TO
npm run commitlint -- --file FILE

Checks the messages of new commits: type(scope): imperative subject. With --file it checks one message, as a commit-msg hook does.

  types   ${TYPES.join(', ')}
  scopes  ${SCOPES.join(', ')}

Exits with 1 if a message has a problem.`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { file: { type: 'string' }, help: { type: 'boolean' } },
})
const [range] = positionals
if (values.help === true || (values.file === undefined && range?.includes('..') !== true)) {
  console.log(HELP)
  process.exitCode = values.help === true ? 0 : 2
} else if (values.file === undefined) {
  const log = execFileSync('git', ['log', '--no-merges', '--format=%h%x00%B%x01', String(range)], { encoding: 'utf8' })
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
