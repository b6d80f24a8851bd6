import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import type { LoadResult } from '@signalbox/testkit/http-connection'
import { ClosedLoop, postBytes } from '@signalbox/testkit/http-connection'
import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { ServerOptions, SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'

import type { BenchContext, Run } from './row.ts'
import type { Subject } from './subject.ts'
import { fileLabel, packageEntry } from './subject.ts'

function profilesOf(context: BenchContext, name: string): string | undefined {
  return context.profiles === undefined ? undefined : join(context.profiles, name)
}

/** Creates a new folder for a store or a log. */
export function newFolder(context: BenchContext): string {
  return mkdtempSync(join(context.folder, 'store-'))
}

/** Starts the subject's server on the measured core, with metrics and without the log line per request. */
export function startServer(
  context: BenchContext,
  subject: Subject,
  options: Partial<Pick<ServerOptions, 'storePath' | 'instrumented' | 'env' | 'nodeArgs'>> = {},
): Promise<SignalboxServer> {
  return startSignalbox({
    ...options,
    root: subject.root,
    storePath: options.storePath ?? newFolder(context),
    core: context.core,
    profiles: profilesOf(context, `server-${fileLabel(subject)}`),
  })
}

/** A measured process with its URL. */
interface Host {
  readonly process: MeasuredProcess
  readonly url: string
}

/** Starts a program of this folder on the measured core. */
function start(
  context: BenchContext,
  script: string,
  args: readonly string[],
  { name = script, nodeArgs = [] }: { readonly name?: string; readonly nodeArgs?: readonly string[] } = {},
): MeasuredProcess {
  return new MeasuredProcess({
    script: fileURLToPath(new URL(`${script}.ts`, import.meta.url)),
    args,
    core: context.core,
    nodeArgs,
    profiles: profilesOf(context, name.replace(/^\w+\//, '')),
  })
}

function entries(subject: Subject, ...names: readonly string[]): readonly string[] {
  return names.map((name) => packageEntry(subject, name))
}

/** Starts a worker of `workers/` with the subject's packages. */
export function startWorker(context: BenchContext, name: string, subject: Subject): MeasuredProcess {
  return start(context, `workers/${name}`, entries(subject, 'broker-core', 'engine-embedded'), {
    name: `${name}-${fileLabel(subject)}`,
    nodeArgs: ['--expose-gc'],
  })
}

/** Starts a process that sends to NATS, through an engine or directly. */
export function startNatsSender(context: BenchContext, url: string): MeasuredProcess {
  return start(context, 'workers/nats-sender', [url])
}

/** Starts a process that delivers to an endpoint, through the subject's webhooks or directly. */
export function startWebhookSender(
  context: BenchContext,
  subject: Subject,
  url: string,
  name: string,
): MeasuredProcess {
  const args = [...entries(subject, 'broker-core', 'engine-embedded', 'webhooks'), url, newFolder(context)]
  return start(context, 'workers/webhook-sender', args, { name: `${name}-${fileLabel(subject)}` })
}

/** Starts a yardstick of `yardsticks/`. */
export function startYardstick(context: BenchContext, name: string, args: readonly string[] = []): MeasuredProcess {
  return start(context, `yardsticks/${name}`, args)
}

/** Starts an MCP host with the server's metrics on or off. */
export function startMetricsHost(context: BenchContext, subject: Subject, mode: 'on' | 'off'): Promise<Host> {
  const metrics = pathToFileURL(join(subject.root, 'apps/server/src/metrics/metrics.ts')).href
  const packages = entries(subject, 'broker-core', 'engine-embedded', 'connector-mcp')
  const name = `metrics-${mode}-${fileLabel(subject)}`
  return listening(start(context, 'workers/metrics-host', [...packages, metrics, newFolder(context), mode], { name }))
}

/** Starts a host of the CloudEvents connector. */
export function startCeHost(context: BenchContext, subject: Subject): Promise<Host> {
  const packages = entries(subject, 'broker-core', 'engine-embedded', 'connector-cloudevents')
  const name = `ce-host-${fileLabel(subject)}`
  return listening(start(context, 'workers/ce-host', [...packages, newFolder(context)], { name }))
}

/** Starts the Fastify echo server. */
export async function startEcho(context: BenchContext): Promise<Host> {
  const { process, url } = await listening(startYardstick(context, 'fastify-echo'))
  return { process, url: `${url}/echo` }
}

/** Starts an agent on the load's core. */
export function startAgent(): Promise<Host> {
  return listening(new MeasuredProcess({ script: fileURLToPath(new URL('workers/agent.ts', import.meta.url)) }))
}

/** Starts a yardstick in front of an agent. */
export function startForwarder(
  context: BenchContext,
  name: 'http-proxy' | 'node-forwarder',
  upstream: string,
): Promise<Host> {
  return listening(startYardstick(context, name, [upstream]))
}

async function listening(process: MeasuredProcess): Promise<Host> {
  return { process, url: await process.line((line) => /^listening on (\S+)$/.exec(line)?.[1]) }
}

/** The number of requests after which V8 has compiled the hot code. */
const WARM_REQUESTS = 40_000

export type RequestFigures = { readonly 'CPU µs/request': number; readonly 'requests/s': number }

/** The place of a number that is another one in each request. */
export const FRESH_ID = '0000000000000000'

/** Returns a function that returns the request, each time with another id in the place of {@link FRESH_ID}. */
function withFreshIds(request: Buffer): Buffer | (() => Buffer) {
  const at = request.indexOf(FRESH_ID)
  if (at === -1) return request
  let next = 0
  return () => {
    const copy = Buffer.from(request)
    copy.write(String(++next).padStart(FRESH_ID.length, '0'), at, 'latin1')
    return copy
  }
}

/**
 * Posts the same JSON over 64 connections until the stack is disposed of. Each round computes the CPU per request of the
 * process that answers.
 */
export async function openLoad(
  context: BenchContext,
  stack: AsyncDisposableStack,
  process: MeasuredProcess,
  url: string,
  json: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Run<RequestFigures>> {
  const request = withFreshIds(postBytes(url, json, headers))
  const loop = stack.adopt(await ClosedLoop.open(url, request), (open) => open.close())
  return warmLoad(context, process, loop)
}

/** Runs a load until the server is warm, and returns the function for one round. */
export async function warmLoad(
  context: BenchContext,
  process: MeasuredProcess,
  loop: { run(durationMs: number): Promise<LoadResult> },
): Promise<Run<RequestFigures>> {
  // The warm-up counts requests, not time: on a busy machine few requests complete in a second, and the compiler needs
  // a number of calls.
  const enough = context.quick ? WARM_REQUESTS / 4 : WARM_REQUESTS
  for (let done = 0; done < enough;) done += (await loop.run(context.warmUpMs / 3)).requests
  let after = await process.cpuMicros()
  return async () => {
    // With unmeasured rounds first, the work between two rounds counts too, such as the deletion of expired ids.
    const before = context.settleMs > 0 ? after : await process.cpuMicros()
    const { requests, wallMs } = await loop.run(context.roundMs)
    after = await process.cpuMicros()
    const cpu = after - before
    return { 'CPU µs/request': cpu / requests, 'requests/s': requests / (wallMs / 1000) }
  }
}
