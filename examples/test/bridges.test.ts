import type { ChildProcess } from 'node:child_process'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { connect as connectSocket, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import type { Signalbox } from '@signalbox/client'
import { connect } from '@signalbox/client'
import { createConfig, startServer } from 'signalbox'
import { expect, onTestFinished, test } from 'vitest'

const BRIDGES = fileURLToPath(new URL('../bridges/', import.meta.url))
const RABBITMQ = '/usr/lib/rabbitmq/bin/rabbitmq-server'
const installed = existsSync(join(BRIDGES, 'node_modules'))
const hasRedis = installed && spawnSync('redis-server', ['--version']).status === 0
const hasRabbitMq = installed && existsSync(RABBITMQ)

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-bridge-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Resolves when something listens on the port. */
async function listening(port: number): Promise<void> {
  const tries = async (): Promise<string> => {
    const socket = connectSocket(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      // A socket can get the very port as its own, and is then connected with itself.
      return socket.localPort === port ? 'closed' : 'open'
    } finally {
      socket.destroy()
    }
  }
  await expect.poll(() => tries().catch(() => 'closed'), { timeout: 120_000 }).toBe('open')
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  onTestFinished(async () => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    // The start script of RabbitMQ has children: end its whole group.
    process.kill(-child.pid, 'SIGKILL')
    await once(child, 'exit')
  })
  return child
}

async function startSignalbox(): Promise<{ readonly url: string; readonly sb: Signalbox }> {
  const server = await startServer(
    createConfig({ http: { port: 0 }, api: { port: 0 }, store: { path: await newFolder() }, log: { level: 'silent' } }),
  )
  onTestFinished(() => server.close())
  const sb = connect(server.http.url)
  onTestFinished(() => sb.close())
  return { url: server.http.url, sb }
}

/** Starts a bridge; resolves when it moves messages. */
async function startBridge(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const bridge = run(process.execPath, ['--conditions=@signalbox/source', join(BRIDGES, name), ...args], env)
  if (bridge.stdout === null) throw new Error('the bridge has no output')
  await once(createInterface({ input: bridge.stdout }), 'line')
  return bridge
}

/** Runs code in the bridges' folder, which has the clients of the other brokers. */
function inBridges(code: string, env: NodeJS.ProcessEnv): void {
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: BRIDGES,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
}

async function stopped(bridge: ChildProcess): Promise<void> {
  bridge.kill('SIGTERM')
  expect(await once(bridge, 'exit')).toEqual([0, null])
}

test.each(globSync('*.mjs', { cwd: BRIDGES }))('examples - the bridge %s has at most 30 lines', async (name) => {
  const lines = (await readFile(join(BRIDGES, name), 'utf8')).trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(30)
})

test.skipIf(!hasRedis)(
  'examples - the bridge of BullMQ moves each job once, with its name and its attempts',
  async () => {
    const { url, sb } = await startSignalbox()
    const port = await freePort()
    run('redis-server', ['--port', String(port), '--save', '', '--dir', await newFolder()])
    await listening(port)
    const env = { REDIS_URL: `redis://127.0.0.1:${port}`, SIGNALBOX_URL: url }
    inBridges(
      `import { Queue } from 'bullmq'
     import { Redis } from 'ioredis'
     const connection = new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null })
     const queue = new Queue('images', { connection })
     for (let image = 0; image < 20; image++) await queue.add('resize', { image }, { attempts: 3 })
     await queue.close()
     await connection.quit()`,
      env,
    )
    const bridge = await startBridge('bullmq.mjs', ['images', 'pictures'], env)
    await expect
      .poll(() =>
        sb
          .queue('pictures')
          .peek({ max: 100 })
          .then((all) => all.length),
      )
      .toBe(20)
    const moved = await sb.queue('pictures').peek({ max: 100 })
    expect(new Set(moved.map(({ data }) => JSON.stringify(data)))).toEqual(
      new Set(Array.from({ length: 20 }, (_, image) => JSON.stringify({ image }))),
    )
    expect(moved[0]).toMatchObject({ type: 'resize', source: '/bullmq' })
    await stopped(bridge)
  },
)

test.skipIf(!hasRabbitMq)(
  'examples - the bridge of RabbitMQ moves text and bytes in order',
  { timeout: 150_000 },
  async () => {
    const { url, sb } = await startSignalbox()
    const [port, names, folder] = [await freePort(), await freePort(), await newFolder()]
    // The daemon that knows the nodes' names outlives them. What is registered first runs last: after the node's end.
    onTestFinished(() => void spawnSync('epmd', ['-port', String(names), '-kill']))
    run(RABBITMQ, [], {
      HOME: folder,
      // Lets the daemon be stopped while it still lists the node.
      ERL_EPMD_RELAXED_COMMAND_CHECK: 'true',
      ERL_EPMD_PORT: String(names),
      RABBITMQ_NODENAME: `bridge-${port}@localhost`,
      RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
      RABBITMQ_NODE_PORT: String(port),
      RABBITMQ_DIST_PORT: String(await freePort()),
      RABBITMQ_MNESIA_BASE: folder,
      RABBITMQ_LOG_BASE: folder,
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    }).stdout?.resume()
    await listening(port)
    const env = { AMQP_URL: `amqp://127.0.0.1:${port}`, SIGNALBOX_URL: url }
    inBridges(
      `import amqp from 'amqplib'
     const connection = await amqp.connect(process.env.AMQP_URL)
     const channel = await connection.createConfirmChannel()
     await channel.assertQueue('jobs', { durable: true })
     for (let i = 0; i < 10; i++) channel.sendToQueue('jobs', Buffer.from(JSON.stringify({ i })), { contentType: 'application/json', messageId: 'm' + i })
     channel.sendToQueue('jobs', Buffer.from([0, 255]))
     await channel.waitForConfirms()
     await connection.close()`,
      env,
    )
    const bridge = await startBridge('rabbitmq.mjs', ['jobs'], env)
    await expect
      .poll(() =>
        sb
          .queue('jobs')
          .peek({ max: 100 })
          .then((all) => all.length),
      )
      .toBe(11)
    const moved = await sb.queue('jobs').peek({ max: 100 })
    expect(moved.map(({ data }) => data)).toEqual([
      ...Array.from({ length: 10 }, (_, i) => ({ i })),
      new Uint8Array([0, 255]),
    ])
    await stopped(bridge)
  },
)
