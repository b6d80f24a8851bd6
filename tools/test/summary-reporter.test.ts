import { execFile } from 'node:child_process'
import { join } from 'node:path'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { expect, test, vi } from 'vitest'

import type { FinishedTest } from '../requirements/proof.ts'
import { missingHere, unproven } from '../requirements/proof.ts'
import type { Requirement } from '../requirements/requirement.ts'

// Each of the first tests starts a run in a process.
vi.setConfig({ testTimeout: 90_000 })

const VITEST = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs')
const FIXTURE = join(import.meta.dirname, 'summary-fixture')

/** Runs the tests of the fixture in a process of their own: the exit code and the lines of the summary. */
function run(second: string, ...args: readonly string[]): Promise<{ code: number; lines: readonly string[] }> {
  const { promise, resolve } = Promise.withResolvers<{ code: number; lines: readonly string[] }>()
  const env = { PATH: process.env['PATH'] ?? '', SECOND_TEST: second }
  execFile(process.execPath, [VITEST, 'run', '--root', FIXTURE, ...args], { env, cwd: FIXTURE }, (error, stdout) => {
    resolve({ code: Number(error?.code ?? 0), lines: stdout.trim().split('\n') })
  })
  return promise
}

function requirement(id: string, needs?: 'nats-server'): Requirement {
  return { id, source: 'here', behavior: 'holds', needs }
}

/** A test's name. Written out it would count as a citation of this file. */
function citing(ids: string): string {
  return `${ids} - holds`
}

function passed(...names: readonly string[]): FinishedTest {
  return { names, state: 'passed' }
}

function end(state: FinishedTest['state']): FinishedTest {
  return { names: [citing('A1')], state }
}

test('summary - a full run whose tests pass and show every requirement ends with 0', async () => {
  expect(await run('passed')).toEqual({ code: 0, lines: ['2 passed, 0 failed'] })
})

test('summary - a requirement whose only test is skipped fails a full run', async () => {
  const { code, lines } = await run('skipped')
  expect(code).toBe(1)
  expect(lines).toEqual([
    expect.stringMatching(/^F-2: no passed test \(the tests that cite it: skipped\)/),
    '1 passed, 1 failed, 1 skipped',
  ])
})

test('summary - a failed test fails the run, and shows no requirement', async () => {
  const { code, lines } = await run('failed')
  expect(code).toBe(1)
  expect(lines.at(-1)).toBe('1 passed, 2 failed')
})

test('summary - a test that passes only when it is repeated is named', async () => {
  const [named, last, ...more] = (await run('passed later', '--retry', '1')).lines
  expect([named, last, more]).toEqual([
    'passed only when repeated: F-2 - the second test ends as the environment says',
    '2 passed, 0 failed',
    [],
  ])
})

test('summary - a run of some tests does not ask for the requirements of the others', async () => {
  expect(await run('failed', '--testNamePattern', 'first')).toEqual({
    code: 0,
    lines: ['1 passed, 0 failed, 1 skipped'],
  })
})

test('requirements - an id counts in the name of a test or of a group around it, and only at its start', () => {
  const three = [requirement('A1'), requirement('B-2'), requirement('C3')]
  expect(unproven(three, [passed(citing('A1, B-2')), passed('inner', citing('C3'))], new Set())).toEqual([])
  expect(unproven(three, [passed('not at its start: A1 - x'), passed('B-2 and C3')], new Set())).toEqual([
    'A1: no passed test (no test that ran cites it): holds',
    'B-2: no passed test (no test that ran cites it): holds',
    'C3: no passed test (no test that ran cites it): holds',
  ])
})

test('requirements - tests may be skipped only where the need they declare is missing, and may not fail', () => {
  const needy = [requirement('A1', 'nats-server')]
  expect(unproven(needy, [end('skipped')], new Set(['nats-server']))).toEqual([])
  expect(unproven(needy, [end('skipped')], new Set())).toHaveLength(1)
  expect(unproven(needy, [end('skipped'), end('failed')], new Set(['nats-server']))).toHaveLength(1)
  expect(unproven(needy, [], new Set(['nats-server']))).toHaveLength(1)
  expect(unproven([requirement('A1')], [end('skipped')], new Set(['nats-server']))).toHaveLength(1)
  expect(unproven(needy, [end('failed'), end('passed')], new Set())).toEqual([])
})

test('requirements - nats-server is missing where the tests of the cluster engine are skipped', () => {
  expect(missingHere().has('nats-server')).toBe(NATS_SERVER === undefined)
})
