import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { ClosedLoop } from '../harness/closed-loop.ts'
import { postBytes } from '../harness/keep-alive-connection.ts'
import { MeasuredProcess } from '../harness/measured-process.ts'
import type { SignalboxServer } from '../harness/signalbox-server.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import type { BenchContext } from './row.ts'
import type { Subject } from './subject.ts'
import { fileLabel, packageEntry } from './subject.ts'

function profilesOf(context: BenchContext, name: string): string | undefined {
  return context.profiles === undefined ? undefined : join(context.profiles, name)
}

/** A new folder of its own for a store or a log. */
export function newFolder(context: BenchContext): string {
  return mkdtempSync(join(context.folder, 'store-'))
}

/** The subject's server on the measured core, quiet (one line a request is off), metrics on. */
export function startServer(
  context: BenchContext,
  subject: Subject,
  options: { storePath?: string; instrumented?: boolean } = {},
): Promise<SignalboxServer> {
  return startSignalbox({
    root: subject.root,
    storePath: options.storePath ?? newFolder(context),
    core: context.core,
    profiles: profilesOf(context, `server-${fileLabel(subject)}`),
    instrumented: options.instrumented ?? true,
  })
}

/** A worker of `workers/` on the measured core, with the subject's packages. */
export function startWorker(context: BenchContext, name: string, subject: Subject): MeasuredProcess {
  return new MeasuredProcess({
    script: fileURLToPath(new URL(`workers/${name}.ts`, import.meta.url)),
    args: [packageEntry(subject, 'broker-core'), packageEntry(subject, 'engine-embedded')],
    core: context.core,
    nodeArgs: ['--expose-gc'],
    profiles: profilesOf(context, `${name}-${fileLabel(subject)}`),
  })
}

/** A yardstick of `yardsticks/` on the measured core. */
export function startYardstick(context: BenchContext, name: string): MeasuredProcess {
  return new MeasuredProcess({
    script: fileURLToPath(new URL(`yardsticks/${name}.ts`, import.meta.url)),
    core: context.core,
    profiles: profilesOf(context, name),
  })
}

/** An MCP host with the server's metrics on or off; resolves with it and its URL. */
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

function listening(process: MeasuredProcess): Promise<string> {
  return process.line((line) => /^listening on (\S+)$/.exec(line)?.[1])
}

/** The Fastify echo server; resolves with it and its URL. */
export async function startEcho(context: BenchContext): Promise<{ process: MeasuredProcess; url: string }> {
  const process = startYardstick(context, 'fastify-echo')
  return { process, url: `${await listening(process)}/echo` }
}

export type RequestFigures = { readonly 'CPU µs/request': number; readonly 'requests/s': number }

/** Posts the same JSON over 64 connections, and reckons what a request costs the process that answers. */
export async function openLoad(
  context: BenchContext,
  process: MeasuredProcess,
  url: string,
  json: string,
): Promise<{ run: () => Promise<RequestFigures>; close: () => void }> {
  const loop = await ClosedLoop.open(url, postBytes(url, json))
  await loop.run(context.warmUpMs)
  const run = async () => {
    const before = await process.cpuMicros()
    const { requests, wallMs } = await loop.run(context.roundMs)
    const cpu = (await process.cpuMicros()) - before
    return { 'CPU µs/request': cpu / requests, 'requests/s': requests / (wallMs / 1000) }
  }
  return { run, close: () => loop.close() }
}
