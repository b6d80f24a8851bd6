import { expect, test } from 'vitest'

import { conform, reportOf, summary } from '../conformance/run.ts'
import type { Scenario } from '../conformance/scenarios.ts'
import { SCENARIOS } from '../conformance/scenarios.ts'

const SMOKES_OF_0_1 = new Set(['server-initialize', 'tools-list', 'dns-rebinding-protection'])

test(
  'conformance - the tool runs both suites against a server and the fixture host',
  { timeout: 120_000 },
  async () => {
    const chosen = SCENARIOS.filter(
      ({ name, suite, version, subject }) =>
        (suite === '0.1' && SMOKES_OF_0_1.has(name)) ||
        (version === '2026-07-28' && subject === 'connector + fixtures' && name === 'tools-call-simple-text') ||
        name === 'tasks-mrtr-input' ||
        (version === '2026-07-28' && subject === 'connector' && name === 'server-stateless'),
    )
    expect(chosen).toHaveLength(6)
    const reports = await conform(chosen, () => {})
    expect(reports.flatMap(({ problems }) => problems)).toEqual([])
    expect(summary(reports)).toContain('| 2026-07-28 | server-stateless | 24/28 | 0 | known failures |')
  },
)

test('conformance - a new failure and a known failure that passes are problems', () => {
  const scenario: Scenario = {
    subject: 'connector',
    suite: '0.2',
    version: '2026-07-28',
    name: 'x',
    known: { old: 'a reason', stale: 'a reason' },
  }
  const report = reportOf(scenario, [
    { id: 'fine', status: 'SUCCESS' },
    { id: 'old', status: 'FAILURE' },
    { id: 'new', status: 'FAILURE', errorMessage: 'wrong' },
    { id: 'stale', status: 'SUCCESS' },
    { id: 'hint', status: 'WARNING' },
  ])
  expect(report).toMatchObject({ passed: 2, known: ['old'], warnings: ['hint'] })
  expect(report.problems).toEqual(['new: wrong', 'stale: it is listed as a known failure, but did not fail'])
  expect(reportOf({ ...scenario, known: {} }, []).problems).toEqual(['the scenario has no checks'])
})
