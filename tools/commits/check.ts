import { BOUNDARIES, shortName } from '../boundaries/table.ts'
import { Passage } from '../prose/passage.ts'
import { RULES } from '../prose/rules.ts'

export const TYPES = ['build', 'chore', 'ci', 'docs', 'feat', 'fix', 'perf', 'refactor', 'revert', 'style', 'test']
/** The server is the package `signalbox`; `ci` and `deps` are no packages. */
export const SCOPES = [...BOUNDARIES.map((row) => shortName(row.package)), 'server', 'ci', 'deps', 'release']

const MOST_CHARACTERS = 100
const HEADER = /^(?<type>\w+)(?:\((?<scopes>[^)]*)\))?!?: (?<subject>.+)$/
/** Messages that Git and GitHub write. */
const GENERATED = /^(?:Merge |Revert "|fixup! |squash! )/
const NOT_A_VERB = /^(?:an?|the|this|these|that|all|some|every|each|no|not|now|also|more|new|it|we|i)$/
const OTHER_FORM = /(?:ed|ing|s)$/
/** Imperatives with an ending of another form. */
const IMPERATIVE = /(?:ss|eed|^bring|^embed|^ping|^shed|^bus|^string|^swing|^spring|^bias|^focus)$/

/** Returns a line for each problem of a commit message; an empty list for a good one. */
export function problemsOfCommit(message: string): readonly string[] {
  const [header = '', blank = ''] = message.split('\n')
  if (GENERATED.test(header)) return []
  const { type, scopes, subject } = HEADER.exec(header)?.groups ?? {}
  if (type === undefined || subject === undefined) {
    return ['the header must have the form "type(scope): subject"; the scope is optional']
  }
  const problems: string[] = []
  if (!TYPES.includes(type)) problems.push(`the type is "${type}"; it must be one of ${TYPES.join(', ')}`)
  for (const scope of scopes?.split(/, ?/) ?? []) {
    if (!SCOPES.includes(scope)) problems.push(`the scope is "${scope}"; it must be one of ${SCOPES.join(', ')}`)
  }
  if (header.length > MOST_CHARACTERS) {
    problems.push(`the header has ${header.length} characters; it may have ${MOST_CHARACTERS}`)
  }
  if (blank !== '') problems.push('the second line must be empty')
  return [...problems, ...problemsOfSubject(subject)]
}

function problemsOfSubject(subject: string): readonly string[] {
  const problems: string[] = []
  const [first = ''] = subject.split(/[\s,;:]/, 1)
  const isOtherForm = NOT_A_VERB.test(first) || (OTHER_FORM.test(first) && !IMPERATIVE.test(first))
  if (isOtherForm)
    problems.push(`the subject begins with "${first}"; begin with an imperative verb, such as "add" or "route"`)
  if (/^[A-Z][a-z]/.test(first)) problems.push(`the subject begins with "${first}"; begin with a lower-case letter`)
  if (subject.endsWith('.')) problems.push('the subject ends with a period; remove it')
  const passage = new Passage('heading', [{ text: subject, line: 1, column: 1 }])
  for (const rule of RULES) {
    if (rule.applies?.(passage, '') === false) continue
    for (const { found } of rule.find(passage)) problems.push(`"${found}": ${rule.message}`)
  }
  return problems
}
