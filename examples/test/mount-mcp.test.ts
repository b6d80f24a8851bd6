import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SERVER = fileURLToPath(new URL('../mount-mcp/server.ts', import.meta.url))
const README = fileURLToPath(new URL('../README.md', import.meta.url))
let folder: string
const children: ChildProcess[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-example-'))
})

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

/** What the README shows after a word, up to the end of that line or quotation. */
async function shown(pattern: RegExp): Promise<string> {
  const found = pattern.exec(await readFile(README, 'utf8'))?.[1]
  expect(found, `the README shows ${pattern}`).toBeDefined()
  return found ?? ''
}

/** Starts the example as its README says, but on a free port and with a store of the test's own. */
async function start(): Promise<{ child: ChildProcess; address: string }> {
  const args = await shown(/^PORT=3000 STORE_PATH=\.\/data npx node (.+)$/m)
  const child = spawn(process.execPath, args.split(' '), {
    cwd: ROOT,
    env: { ...process.env, PORT: '0', STORE_PATH: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const output: string[] = []
  const address = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        output.push(String(chunk))
        const found = /listening on (\S+)/.exec(output.join(''))?.[1]
        if (found) resolve(found)
      })
    }
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${output.join('')}`)))
  })
  return { child, address }
}

async function connect(address: string): Promise<Client> {
  const client = new Client({ name: 'example-test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', address)))
  return client
}

async function stop(child: ChildProcess): Promise<number | null> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const [code] = (await exited) as [number | null]
  return code
}

describe('examples - mount-mcp', () => {
  test('is about thirty lines', async () => {
    expect((await readFile(SERVER, 'utf8')).trimEnd().split('\n').length).toBeLessThanOrEqual(30)
  })

  test('serves its own route and the tools, keeps messages over a restart, and ends when asked to', async () => {
    const first = await start()
    expect(await (await fetch(first.address)).json()).toHaveProperty('hello')
    const client = await connect(first.address)
    const { tools } = await client.listTools()
    expect(tools).toHaveLength(11)
    const answer = await client.callTool({ name: 'query_send', arguments: { channel: 'clock', body: '' } })
    expect(answer).toMatchObject({
      isError: false,
      content: [{ type: 'text', text: expect.stringMatching(/^\d{4}-.*Z$/) }],
    })
    const asShown = await fetch(new URL('/mcp', first.address), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: await shown(/^curl -s http:\/\/127\.0\.0\.1:3000\/mcp -H 'content-type: application\/json' -d '([^']+)'$/m),
    })
    expect(await asShown.json()).toMatchObject({ id: 1, result: { isError: false } })
    await client.callTool({ name: 'queue_send', arguments: { channel: 'jobs', body: 'kept' } })
    await client.close()
    expect(await stop(first.child)).toBe(0)

    const second = await start()
    const again = await connect(second.address)
    const received = await again.callTool({ name: 'queue_receive', arguments: { channel: 'jobs', max_messages: 1 } })
    expect(received).toMatchObject({ structuredContent: { messages: [{ body: 'kept' }] } })
    await again.close()
    expect(await stop(second.child)).toBe(0)
  })
})

test('examples - the authenticator of the guide makes your users callers, and refuses others', async () => {
  const page = await readFile(join(ROOT, 'docs/guides/embedding.md'), 'utf8')
  const [, code = ''] = /<!-- snippet: authenticator -->\s+```ts\n(.*?)```/s.exec(page) ?? []
  const store = join(folder, 'authenticated')
  const program = join(ROOT, 'examples', `authenticated-${process.pid}.mts`)
  await writeFile(program, code.replace('./data', store).replace('port: 3000', 'port: 0'))
  try {
    const child = spawn(process.execPath, ['--conditions=@signalbox/source', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    const [line] = await once(child.stdout, 'data')
    const call = async (session: string) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${session}` }
      const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
      return (await fetch(`${String(line).trim()}/mcp`, { method: 'POST', headers, body })).json()
    }
    expect(await call('session-of-ann')).toMatchObject({ result: {} })
    expect(await call('session-of-bob')).toMatchObject({ error: { code: -32010 } })
  } finally {
    await rm(program)
  }
})
