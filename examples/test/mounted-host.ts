import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Progress } from '@modelcontextprotocol/sdk/types.js'
import { expect, onTestFinished } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A running example. */
export interface MountedHost {
  /** The URL of its endpoint. */
  readonly url: URL
  /** Asks it to end, and returns its exit code. */
  readonly stop: () => Promise<number | null>
}

const SOURCE = '--conditions=@signalbox/source'

/**
 * Starts an example of mount-hosts on a free port, with its own store.
 * @param runtime The command. Default: this Node with the sources of the packages
 */
export async function startMountedHost(name: string, runtime = [process.execPath, SOURCE]): Promise<MountedHost> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-mount-'))
  const [command = '', ...args] = runtime
  const child = spawn(command, [...args, `examples/mount-hosts/${name}.ts`], {
    cwd: ROOT,
    env: { ...process.env, NODE_OPTIONS: '', PORT: '0', STORE_PATH: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit') as Promise<[number | null]>
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
    await rm(folder, { recursive: true, force: true })
  })
  let output = ''
  const base = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      const found = /listening on (\S+)/.exec(output)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${output}`)))
  })
  return {
    url: new URL('/mcp', base),
    async stop() {
      child.kill('SIGTERM')
      const [code] = await exited
      return code
    },
  }
}

/** Sends a request as the host's clients do; for a route handler, without a server. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Drives an endpoint with the official client: the tools, a queue, a long poll with a stream, a client that leaves. */
export async function driveEndpoint(url: URL, send: Fetch = fetch): Promise<void> {
  const client = new Client({ name: 'example-test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: send }))
  const { tools } = await client.listTools()
  expect(tools).toHaveLength(11)

  await client.callTool({ name: 'queue_send', arguments: { channel: 'jobs', body: 'one' } })
  expect(await received(client, 'jobs')).toEqual(['one'])

  const waits = Promise.withResolvers<Progress>()
  const poll = received(client, 'later', waits.resolve)
  await waits.promise
  await client.callTool({ name: 'queue_send', arguments: { channel: 'later', body: 'two' } })
  expect(await poll).toEqual(['two'])

  const gone = new AbortController()
  const response = await send(url, {
    method: 'POST',
    signal: gone.signal,
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'queue_receive',
        arguments: { channel: 'left', max_messages: 1, wait_timeout_seconds: 60 },
        _meta: { progressToken: 1 },
      },
    }),
  })
  await response.body?.getReader().read()
  gone.abort()
  // A receive that still waited would take the message.
  await new Promise((resolve) => setTimeout(resolve, 500))
  await client.callTool({ name: 'queue_send', arguments: { channel: 'left', body: 'three' } })
  expect(await received(client, 'left')).toEqual(['three'])
  await client.close()
}

/** Ends a host while a receive waits and a stream is open: the receive ends empty. Returns the exit code of the host. */
export async function endWhileWaiting({ url, stop }: MountedHost, send: Fetch = fetch): Promise<number | null> {
  const client = new Client({ name: 'example-test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: send }))
  const waits = Promise.withResolvers<Progress>()
  const poll = received(client, 'ever', waits.resolve)
  await waits.promise
  const code = stop()
  expect(await poll).toEqual([])
  await client.close()
  return code
}

async function received(client: Client, channel: string, onprogress?: (progress: Progress) => void): Promise<unknown> {
  const { structuredContent } = await client.callTool(
    { name: 'queue_receive', arguments: { channel, max_messages: 1, wait_timeout_seconds: 60 } },
    undefined,
    onprogress === undefined ? {} : { onprogress },
  )
  const { messages } = structuredContent as { readonly messages: readonly { readonly body: string }[] }
  return messages.map(({ body }) => body)
}
