import { globSync } from 'node:fs'

import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { testServer } from '@signalbox/testkit/test-server'
import { constant, sample } from 'fast-check'
import { expect, test } from 'vitest'

import { fuzz, summary } from '../hostile/fuzz/run.ts'
import type { OpenTarget, Target } from '../hostile/fuzz/target.ts'
import { Finding, readInput, replay } from '../hostile/fuzz/target.ts'
import { TARGETS } from '../hostile/fuzz/targets/index.ts'
import { HonestClient } from '../hostile/honest-client.ts'

const regressions = globSync('hostile/fuzz/regressions/*.json', { cwd: `${import.meta.dirname}/..` })
  .toSorted()
  .map((file) => readInput(`${import.meta.dirname}/../${file}`))

const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{}}}'

function isServer({ target }: { readonly target: string }): boolean {
  return target.startsWith('server-')
}

test.each(regressions.filter((stored) => !isServer(stored)))('fuzz - $target: $name', async (stored) => {
  const finding = await replay(TARGETS, stored)
  expect(finding, finding?.message).toBeUndefined()
})

test('fuzz - every parser takes inputs of its grammar, and nothing is found', async () => {
  await using out = await TemporaryFolder.create('fuzz')
  const targets = TARGETS.filter(({ name }) => !isServer({ target: name }))
  const reports = await fuzz({ targets, milliseconds: 1_500, seed: 1, out: out.path, log: () => {} })
  expect(
    reports.flatMap(({ findings }) => findings),
    summary(reports),
  ).toEqual([])
  expect(reports.filter(({ inputs }) => inputs === 0)).toEqual([])
})

/** Takes strings; the check of a test decides which of them fail. */
function targetOf(check: OpenTarget['check'], settle?: OpenTarget['settle']): Target {
  const open: OpenTarget = { check, async [Symbol.asyncDispose]() {}, ...(settle && { settle }) }
  return { name: 'failing', about: '', weight: 1, input: constant('one input'), open: async () => open }
}

test('fuzz - a failed call is a finding with its input, and the run continues', async () => {
  await using out = await TemporaryFolder.create('fuzz')
  let calls = 0
  const failing = targetOf(
    async () => {
      if (++calls === 2) throw new Error('the honest client got no answer')
    },
    async () => {
      throw new Error('a message is lost')
    },
  )
  const [report, next] = await fuzz({
    targets: [failing, targetOf(async () => {})],
    milliseconds: 1_000,
    seed: 1,
    out: out.path,
    log: () => {},
  })
  expect(report?.findings.map(({ finding }) => finding.message)).toEqual([
    'Error: the honest client got no answer',
    'Error: a message is lost',
  ])
  expect(report?.findings.map(({ file }) => readInput(file).input)).toEqual(['one input', 'one input'])
  expect(calls).toBeGreaterThan(3)
  expect(next?.inputs).toBeGreaterThan(0)
})

test('fuzz - a server that does not start again ends the inputs of its target', async () => {
  await using out = await TemporaryFolder.create('fuzz')
  let calls = 0
  const gone = targetOf(async () => {
    calls++
    throw new Finding('gone', 'the server does not start again')
  })
  const [report] = await fuzz({ targets: [gone], milliseconds: 5_000, seed: 1, out: out.path, log: () => {} })
  expect(report?.findings.map(({ finding }) => finding.kind)).toEqual(['gone'])
  expect(calls).toBe(1)
})

test('fuzz - a target that does not open is a finding, and the others run', async () => {
  await using out = await TemporaryFolder.create('fuzz')
  const closed: Target = { ...targetOf(async () => {}), open: () => Promise.reject(new Error('no port is free')) }
  const targets = [closed, targetOf(async () => {})]
  const [report, next] = await fuzz({ targets, milliseconds: 20, seed: 1, out: out.path, log: () => {} })
  expect(report?.findings.map(({ finding }) => finding.message)).toEqual(['Error: no port is free'])
  expect(next?.inputs).toBeGreaterThan(0)
})

test('fuzz - an honest client whose call is late fails, and its next call uses a new connection', async () => {
  let requests = 0
  const { url } = await testServer((_, response) => {
    if (++requests > 1) response.setHeader('content-length', ANSWER.length).end(ANSWER)
  })
  const options = { queue: 'honest', sends: 1, receiveAt: 9, waitSeconds: 1, timeoutMs: 1_000 }
  const client = new HonestClient(options)
  const error = await client.work(url).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ kind: 'answer', message: expect.stringContaining('queue_send took more than 1000 ms') })
  await client.work(url)
  expect(requests).toBe(2)
})

// One server for all, because each is started, killed and started again.
test('fuzz - a running server handles inputs that once broke one, and similar ones', { timeout: 60_000 }, async () => {
  const target = TARGETS.find(({ name }) => name === 'server-http')
  expect(target).toBeDefined()
  if (target === undefined) return
  await using server = await target.open()
  for (const { input } of regressions.filter(isServer)) await server.check(input)
  for (const input of sample(target.input, { numRuns: 30, seed: 1 })) await server.check(input)
  await server.settle?.()
})
