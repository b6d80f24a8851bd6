import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { connect } from '@signalbox/client'
import type { RunningServer } from 'signalbox'
import { createConfig, startServer } from 'signalbox'
import { expect, onTestFinished, test } from 'vitest'

const WORKER = fileURLToPath(new URL('../client/worker.ts', import.meta.url))
const PULL_AGENT = fileURLToPath(new URL('../client/pull-agent.ts', import.meta.url))

/** Starts a program with the URL of a server, and resolves when it has written its first line. */
async function startProgram(file: string, url: string): Promise<ChildProcess> {
  const program = spawn(process.execPath, ['--conditions=@signalbox/source', file, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void program.kill('SIGKILL'))
  await once(createInterface({ input: program.stdout }), 'line')
  return program
}

async function startBroker(): Promise<RunningServer> {
  const store = await mkdtemp(join(tmpdir(), 'signalbox-worker-'))
  onTestFinished(() => rm(store, { recursive: true, force: true }))
  const server = await startServer(
    createConfig({ http: { port: 0 }, api: { port: 0 }, store: { path: store }, log: { level: 'silent' } }),
  )
  onTestFinished(() => server.close())
  return server
}

test('examples - the worker does jobs, answers queries, and finishes on SIGTERM', async () => {
  const server = await startBroker()
  const worker = await startProgram(WORKER, server.http.url)
  await using sb = connect(server.http.url)
  const [done] = await Promise.all([
    sb.store('jobs.done').read({ follow: true }).next(),
    sb.queue('jobs').send({ text: 'to be or not' }, { maxReceives: 3, deadLetter: 'jobs.dead' }),
  ])
  expect(done.value).toMatchObject({ data: { text: 'to be or not', words: 4 }, source: '/examples/worker' })
  await expect.poll(() => sb.query('jobs.words', 'to be or not').catch(() => undefined)).toBe(4)
  await expect(sb.query('jobs.words', 'nothing')).rejects.toThrow('no job was done for "nothing"')
  worker.kill('SIGTERM')
  expect(await once(worker, 'exit')).toEqual([0, null])
  expect(await sb.queue('jobs').peek()).toEqual([])
})

test('examples - the pull agent is at most forty lines, streams its answer, and finds requests that waited', async () => {
  expect((await readFile(PULL_AGENT, 'utf8')).trimEnd().split('\n').length).toBeLessThanOrEqual(40)
  const server = await startBroker()
  const agent = await startProgram(PULL_AGENT, server.http.url)
  await using sb = connect(server.http.url)
  await expect.poll(async () => (await sb.agents.list({ skillTags: ['text'] })).length).toBe(1)
  const seen: unknown[] = []
  for await (const { text, state } of sb.agents('shouter').stream('to be or not')) seen.push(state ?? text)
  expect(seen).toEqual(['submitted', 'working', 'TO ', 'BE ', 'OR ', 'NOT ', 'completed'])
  expect(await sb.agents('shouter').send(' ')).toMatchObject({ state: 'failed', text: 'the message has no text' })
  agent.kill('SIGTERM')
  expect(await once(agent, 'exit')).toEqual([0, null])

  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'later' }] }
  const configuration = { returnImmediately: true }
  const { task } = await sb.agents('shouter').call('SendMessage', { message, configuration })
  expect(task).toMatchObject({ status: { state: 'TASK_STATE_SUBMITTED' } })
  const { id } = task as { id: string }
  await startProgram(PULL_AGENT, server.http.url)
  await expect
    .poll(() => sb.agents('shouter').call('GetTask', { id }), { timeout: 20_000 })
    .toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'LATER ' }] }] })
}, 60_000)
