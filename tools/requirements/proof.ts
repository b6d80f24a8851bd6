import { spawnSync } from 'node:child_process'

import type { Need, Requirement } from './requirement.ts'

/** A test of a finished run: its own name, the names of the groups around it, and its result. */
export interface FinishedTest {
  readonly names: readonly string[]
  readonly state: 'passed' | 'failed' | 'skipped' | 'pending'
}

/**
 * Returns a line for each requirement that no passed test of the run cites. `missing` lists the needs that this machine
 * does not meet.
 */
export function unproven(
  requirements: readonly Requirement[],
  tests: readonly FinishedTest[],
  missing: ReadonlySet<Need>,
): readonly string[] {
  const seen = new Map<string, Set<FinishedTest['state']>>()
  for (const { names, state } of tests) {
    for (const id of names.flatMap(citedByName)) {
      const states = seen.get(id) ?? new Set()
      seen.set(id, states.add(state))
    }
  }
  return requirements.flatMap(({ id, behavior, needs }) => {
    const states = seen.get(id) ?? new Set()
    if (states.has('passed')) return []
    const onlySkipped = states.has('skipped') && !states.has('failed') && !states.has('pending')
    if (onlySkipped && needs !== undefined && missing.has(needs)) return []
    const ends = states.size === 0 ? 'no test that ran cites it' : `the tests that cite it: ${[...states].join(', ')}`
    return [`${id}: no passed test (${ends}): ${behavior}`]
  })
}

const ID = String.raw`[A-Z]{1,6}-?\d{1,3}`
const IDS = String.raw`${ID}(?:, ${ID})*`
const AT_START = new RegExp(`^(${IDS}) - `)
const IN_SOURCE = new RegExp(`['"\`](${IDS}) - `, 'g')

/** Returns the ids that a test's name cites: `M7, TOOL-1 - …` cites M7 and TOOL-1. */
function citedByName(name: string): readonly string[] {
  return AT_START.exec(name)?.[1]?.split(', ') ?? []
}

/** Returns the ids that the names in a test file's source cite. */
export function citedInSource(text: string): readonly string[] {
  return [...text.matchAll(IN_SOURCE)].flatMap(([, ids = '']) => ids.split(', '))
}

/** The places where `@signalbox/engine-nats/testing` looks. The end of a run cannot import it: the package may not be built. */
const NATS_SERVERS = ['nats-server', '/usr/sbin/nats-server', '/usr/local/bin/nats-server']

/** Returns the needs that this machine does not meet. */
export function missingHere(): ReadonlySet<Need> {
  const servers = [process.env['NATS_SERVER_BINARY'] ?? '', ...NATS_SERVERS].filter((command) => command !== '')
  const found = servers.some((command) => spawnSync(command, ['--version']).status === 0)
  return new Set<Need>(found ? [] : ['nats-server'])
}
