import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import type { LoadResult } from '@signalbox/testkit/http-connection'
import { ClosedLoop, postBytes } from '@signalbox/testkit/http-connection'
import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { ServerOptions, SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'

import type { BenchContext } from './row.ts'
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

/** Starts a worker of `workers/` on the measured core, with the subject's packages. */
export function startWorker(context: BenchContext, name: string, subject: Subject): MeasuredProcess {
  return new MeasuredProcess({
    script: fileURLToPath(new URL(`workers/${name}.ts`, import.meta.url)),
    args: [packageEntry(subject, 'broker-core'), packageEntry(subject, 'engine-embedded')],
    core: context.core,
    nodeArgs: ['--expose-gc'],
    profiles: profilesOf(context, `${name}-${fileLabel(subject)}`),
  })
}

/** Starts a process on the measured core that sends to NATS, through an engine or directly. */
export function startNatsSender(context: BenchContext, url: string): MeasuredProcess {
  return new MeasuredProcess({
    script: fileURLToPath(new URL('workers/nats-sender.ts', import.meta.url)),
    args: [url],
    core: context.core,
    profiles: context.profiles,
  })
}

/** Starts a process on the measured core that delivers to an endpoint, through the subject's webhooks or directly. */
export function startWebhookSender(
  context: BenchContext,
  subject: Subject,
  url: string,
  name: string,
): MeasuredProcess {
  return new MeasuredProcess({
    script: fileURLToPath(new URL('workers/webhook-sender.ts', import.meta.url)),
    args: [
      ...['broker-core', 'engine-embedded', 'webhooks'].map((entry) => packageEntry(subject, entry)),
      url,
      newFolder(context),
    ],
    core: context.core,
    profiles: profilesOf(context, `${name}-${fileLabel(subject)}`),
  })
}

/** Starts a yardstick of `yardsticks/` on the measured core. */
export function startYardstick(context: BenchContext, name: string, args: readonly string[] = []): MeasuredProcess {
  return new MeasuredProcess({
    script: fileURLToPath(new URL(`yardsticks/${name}.ts`, import.meta.url)),
    args,
    core: context.core,
    profiles: profilesOf(context, name),
  })
}

/** Starts an MCP host with the server's metrics on or off; resolves with it and its URL. */
export async function startMetricsHost(
  context: BenchContext,
  subject: Subject,
  mode: 'on' | 'off',
): Promise<{ process: MeasuredProcess; url: string }> {
  const process = new MeasuredProcess({
    script: fileURLToPath(new URL('workers/metrics-host.ts', import.meta.url)),
    args: [
      ...['broker-core', 'engine-embedded', 'connector-mcp'].map((name) => packageEntry(subject, name)),
      pathToFileURL(join(subject.root, 'apps/server/src/metrics/metrics.ts')).href,
      newFolder(context),
      mode,
    ],
    core: context.core,
    profiles: profilesOf(context, `metrics-${mode}-${fileLabel(subject)}`),
  })
  return { process, url: await listening(process) }
}

/** Starts a host of the CloudEvents connector; resolves with it and its URL. */
export async function startCeHost(
  context: BenchContext,
  subject: Subject,
): Promise<{ process: MeasuredProcess; url: string }> {
  const process = new MeasuredProcess({
    script: fileURLToPath(new URL('workers/ce-host.ts', import.meta.url)),
    args: [
      ...['broker-core', 'engine-embedded', 'connector-cloudevents'].map((name) => packageEntry(subject, name)),
      newFolder(context),
    ],
    core: context.core,
    profiles: profilesOf(context, `ce-host-${fileLabel(subject)}`),
  })
  return { process, url: await listening(process) }
}

function listening(process: MeasuredProcess): Promise<string> {
  return process.line((line) => /^listening on (\S+)$/.exec(line)?.[1])
}

/** Starts the Fastify echo server; resolves with it and its URL. */
export async function startEcho(context: BenchContext): Promise<{ process: MeasuredProcess; url: string }> {
  const process = startYardstick(context, 'fastify-echo')
  return { process, url: `${await listening(process)}/echo` }
}

/** Starts an agent on the load's core; resolves with it and its URL. */
export async function startAgent(): Promise<{ process: MeasuredProcess; url: string }> {
  const process = new MeasuredProcess({ script: fileURLToPath(new URL('workers/agent.ts', import.meta.url)) })
  return { process, url: await listening(process) }
}

/** Starts a yardstick in front of an agent; resolves with it and its URL. */
export async function startForwarder(
  context: BenchContext,
  name: 'http-proxy' | 'node-forwarder',
  upstream: string,
): Promise<{ process: MeasuredProcess; url: string }> {
  const process = startYardstick(context, name, [upstream])
  return { process, url: await listening(process) }
}

/** The number of requests after which V8 has compiled the hot code. */
const WARM_REQUESTS = 40_000

export type RequestFigures = { readonly 'CPU µs/request': number; readonly 'requests/s': number }

/** Posts the same JSON over 64 connections, and computes the CPU per request of the process that answers. */
export async function openLoad(
  context: BenchContext,
  process: MeasuredProcess,
  url: string,
  json: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ run: () => Promise<RequestFigures>; close: () => void }> {
  const loop = await ClosedLoop.open(url, postBytes(url, json, headers))
  return { run: await warmLoad(context, process, loop), close: () => loop.close() }
}

/** Runs a load until the server is warm, and returns the function for one round. */
export async function warmLoad(
  context: BenchContext,
  process: MeasuredProcess,
  loop: { run(durationMs: number): Promise<LoadResult> },
): Promise<() => Promise<RequestFigures>> {
  // The warm-up counts requests, not time: on a busy machine few requests complete in a second, and the compiler needs
  // a number of calls.
  const enough = context.quick ? WARM_REQUESTS / 4 : WARM_REQUESTS
  for (let done = 0; done < enough;) done += (await loop.run(context.warmUpMs / 3)).requests
  return async () => {
    const before = await process.cpuMicros()
    const { requests, wallMs } = await loop.run(context.roundMs)
    const cpu = (await process.cpuMicros()) - before
    return { 'CPU µs/request': cpu / requests, 'requests/s': requests / (wallMs / 1000) }
  }
}
