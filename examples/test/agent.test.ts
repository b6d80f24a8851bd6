import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import { createConfig, startServer } from 'signalbox'
import type { RunningServer } from 'signalbox'
import { expect, onTestFinished, test } from 'vitest'

const AGENT = fileURLToPath(new URL('../agent/agent.ts', import.meta.url))

async function startBroker(store: string, port = 0): Promise<RunningServer> {
  const server = await startServer(
    createConfig({ http: { port }, api: { port: 0 }, store: { path: store }, log: { level: 'silent' } }),
  )
  onTestFinished(() => server.close())
  return server
}

async function newStore(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-agent-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Resolves when the agent says that it is registered. */
async function startAgent(base: string, env: Readonly<Record<string, string>> = {}): Promise<ChildProcess> {
  const agent = spawn(process.execPath, [AGENT, base, 'words'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void agent.kill('SIGKILL'))
  await once(createInterface({ input: agent.stdout }), 'line')
  return agent
}

async function listed(base: string): Promise<unknown> {
  return (await fetch(`${base}/agents?skill_tags=text`)).json()
}

test('examples - the agent is under sixty lines, and uses nothing but Node', async () => {
  const source = await readFile(AGENT, 'utf8')
  expect(source.trimEnd().split('\n').length).toBeLessThan(60)
  const modules = [...source.matchAll(/ from '([^']+)'/g)].map(([, name = '']) => name)
  expect(modules.length).toBeGreaterThan(0)
  expect(modules.filter((name) => !name.startsWith('node:'))).toEqual([])
})

test('examples - the agent refuses what it does not know, and deregisters on SIGTERM', async () => {
  const { http } = await startBroker(await newStore())
  const agent = await startAgent(http.url)
  expect(await listed(http.url)).toMatchObject([{ agent_id: 'words' }])
  const answer = await fetch(`${http.url}/a2a/words`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":"x","method":"tasks/get"}',
  })
  expect(await answer.json()).toEqual({
    jsonrpc: '2.0',
    id: 'x',
    error: { code: -32601, message: 'no such method: tasks/get' },
  })
  agent.kill('SIGTERM')
  expect(await once(agent, 'exit')).toEqual([0, null])
  expect(await listed(http.url)).toEqual([])
})

test('examples - an agent whom the broker forgot registers again', async () => {
  const { http } = await startBroker(await newStore())
  await startAgent(http.url, { HEARTBEAT_MS: '50' })
  await fetch(`${http.url}/agents/words`, { method: 'DELETE' })
  await expect.poll(() => listed(http.url), { timeout: 20_000 }).toMatchObject([{ agent_id: 'words' }])
})

test('examples - the agent prints one line when the server is gone, at its start and at its end', async () => {
  const unable = spawn(process.execPath, [AGENT, 'http://127.0.0.1:2', 'words'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [errors] = await Promise.all([text(unable.stderr), once(unable, 'close')])
  expect(errors).toBe('http://127.0.0.1:2 register: unreachable\n')
  expect(unable.exitCode).toBe(1)

  const broker = await startBroker(await newStore())
  const { http } = broker
  const agent = spawn(process.execPath, [AGENT, http.url, 'words'], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void agent.kill('SIGKILL'))
  await once(createInterface({ input: agent.stdout }), 'line')
  await broker.close()
  agent.kill('SIGTERM')
  const [last] = await Promise.all([text(agent.stderr), once(agent, 'close')])
  expect(last).toBe(`${http.url} deregister: unreachable\n`)
  expect(agent.exitCode).toBe(0)
})
