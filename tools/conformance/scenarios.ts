/** The versions of the official suite, each in its own package. */
export type SuiteName = '0.1' | '0.2'

/** The endpoint of a scenario: the server, or a host with the suite's tools over the same connector. */
export type Subject = 'connector' | 'connector + fixtures'

export interface Scenario {
  readonly subject: Subject
  readonly suite: SuiteName
  /** The protocol revision. */
  readonly version: string
  readonly name: string
  /** Checks that fail, by id, with the reason. Such a check that passes is reported too. */
  readonly known: Readonly<Record<string, string>>
}

const OLDER = '2025-11-25'
const STATELESS = '2026-07-28'

/** The reason for checks that need a tool that only the fixtures have. */
const NEEDS_FIXTURE = 'needs a tool of the suite'

const KNOWN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'connector server-stateless': {
    'sep-2575-server-rejects-undeclared-capability': NEEDS_FIXTURE,
    'sep-2575-missing-capability-http-400': NEEDS_FIXTURE,
    'sep-2575-http-server-no-independent-requests-on-stream': NEEDS_FIXTURE,
    'sep-2575-server-no-log-without-loglevel': NEEDS_FIXTURE,
  },
}

function scenarios(subject: Subject, suite: SuiteName, version: string, names: readonly string[]): readonly Scenario[] {
  return names.map((name) => ({ subject, suite, version, name, known: KNOWN[`${subject} ${name}`] ?? {} }))
}

/** The scenarios of the extension for tasks. Its notifications have no scenario yet. */
const TASKS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-mrtr-composition',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-required-task-error',
]

/**
 * The scenarios of calls that ask for input. Absent are those with sampling, roots and prompts, which the connector never
 * requests, and the one that answers without the `requestState` of the call.
 */
const INPUT = [
  'input-required-result-basic-elicitation',
  'input-required-result-request-state',
  'input-required-result-multi-round',
  'input-required-result-missing-input-response',
  'input-required-result-result-type',
  'input-required-result-tampered-state',
  'input-required-result-validate-input',
]

const FIXTURE_TOOLS = ['tools-call-simple-text', 'tools-call-error', 'tools-call-with-progress', 'json-schema-2020-12']

/**
 * The scenarios for a server that has only tools. Absent are those for resources, prompts, sampling, elicitation
 * and logging, and those for images, audio and embedded resources: the tools return text.
 */
export const SCENARIOS: readonly Scenario[] = [
  ...scenarios('connector', '0.1', OLDER, [
    'server-initialize',
    'ping',
    'tools-list',
    'dns-rebinding-protection',
    'server-sse-multiple-streams',
  ]),
  ...scenarios('connector', '0.2', OLDER, [
    'server-initialize',
    'ping',
    'tools-list',
    'dns-rebinding-protection',
    'server-sse-multiple-streams',
    'server-session-lifecycle',
  ]),
  ...scenarios('connector', '0.2', STATELESS, [
    'server-stateless',
    'http-header-validation',
    'tools-list',
    'dns-rebinding-protection',
    'server-sse-multiple-streams',
    'sep-2164-resource-not-found',
    'input-required-result-unsupported-methods',
    'input-required-result-ignore-extra-params',
    'input-required-result-validate-input',
    'input-required-result-missing-input-response',
  ]),
  ...scenarios('connector + fixtures', '0.1', OLDER, FIXTURE_TOOLS),
  ...scenarios('connector + fixtures', '0.2', OLDER, FIXTURE_TOOLS),
  ...scenarios('connector + fixtures', '0.2', STATELESS, [...FIXTURE_TOOLS, 'server-stateless', ...INPUT, ...TASKS]),
]
