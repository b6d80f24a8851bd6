import { readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { markdownTable, median, quantile } from '@signalbox/testkit/figures'
import { WORKSPACE } from '@signalbox/testkit/signalbox-server'

import type { Goal, Measure } from './row.ts'

/** `–` is the verdict of a value without a goal. */
export type Verdict = 'aim' | 'must' | 'missed' | '–'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly kernel: string
  readonly pinned: string
}

/** A component of a value in the working tree, divided by the same in the other commit. */
export interface Against {
  readonly name: string
  readonly subject: string
  readonly component: string
  /** One ratio for each set of processes. */
  readonly ratios: readonly number[]
}

export interface Report {
  readonly at: string
  readonly commit: string
  readonly rounds: number
  /** The number of times that each row started its processes. */
  readonly processes: number
  readonly roundMs: number
  readonly quick: boolean
  readonly machine: Machine
  readonly versions: Readonly<Record<string, string>>
  readonly measures: readonly (Measure & { readonly median: number; readonly verdict: Verdict })[]
  readonly against: readonly Against[]
}

export const RESULTS = fileURLToPath(new URL('results', import.meta.url))

export function machine(core: number | undefined): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    pinned: core === undefined ? 'no' : `measured on core ${core}, load on another`,
  }
}

export function versions(): Record<string, string> {
  const installed = ['fastify', '@modelcontextprotocol/sdk', 'better-sqlite3', 'typebox'].map((name) => {
    const manifest = readFileSync(join(WORKSPACE, 'node_modules', name, 'package.json'), 'utf8')
    return [name, (JSON.parse(manifest) as { version: string }).version]
  })
  return { node: process.version, ...(Object.fromEntries(installed) as Record<string, string>) }
}

export function verdict(value: number, goal: Goal | undefined): Verdict {
  if (goal === undefined) return '–'
  const { must, aim, better } = goal
  const reaches = (goal: number) => (better === 'more' ? value >= goal : value <= goal)
  if (reaches(aim)) return 'aim'
  return reaches(must) ? 'must' : 'missed'
}

export function judged(measure: Measure): Report['measures'][number] {
  const value = median(measure.samples)
  return { ...measure, median: value, verdict: verdict(value, measure.goal) }
}

/** Joins what the runs of a row measured: all samples, and the median of each component. */
export function joined(runs: readonly (readonly Measure[])[]): readonly Measure[] {
  const [first = []] = runs
  return first.map((measure, at) => {
    const same = runs.map((measures) => measures[at] ?? measure)
    const medians = Object.keys(measure.details).map((label) => [
      label,
      median(same.map(({ details }) => details[label] ?? Number.NaN)),
    ])
    const details: Readonly<Record<string, number>> = Object.fromEntries(medians)
    return Object.assign({}, measure, { samples: same.flatMap(({ samples }) => samples), details })
  })
}

/**
 * Compares the CPU of a subject with that of another one, run by run. Values that both share, such as those of a yardstick,
 * are left out.
 */
export function comparedCpu(runs: readonly (readonly Measure[])[], own: string): readonly Against[] {
  const [first = []] = runs
  return first
    .filter(({ subject }) => subject !== own)
    .flatMap(({ name, subject, details }) =>
      Object.keys(details)
        .filter((component) => component.includes('CPU'))
        .map((component) => ({
          name,
          subject,
          component: component.trim(),
          ratios: runs.flatMap((measures) => {
            const of = (label: string) => measures.find((one) => one.name === name && one.subject === label)
            const [above, below] = [of(own)?.details[component], of(subject)?.details[component]]
            return above === undefined || below === undefined ? [] : [above / below]
          }),
        })),
    )
    .filter(({ ratios }) => ratios.some((ratio) => ratio !== 1))
}

function range(values: readonly number[]): string {
  return `${figure(quantile(values, 0))}–${figure(quantile(values, 1))}`
}

export function figure(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}

/** Returns the table for people; the JSON file holds every round. */
export function markdown(report: Report): string {
  const { machine: box } = report
  const several = new Set(report.measures.map(({ subject }) => subject)).size > 1
  const lines = [
    `Signalbox ${report.commit}, ${report.at}, ${report.rounds} rounds of ${report.roundMs} ms, ${report.processes} times with new processes${report.quick ? ' (quick: indicative only)' : ''}`,
    '',
    `${box.cpu}, ${box.cores} cores, ${box.memoryGiB} GiB, Linux ${box.kernel}; pinned: ${box.pinned}`,
    '',
    Object.entries(report.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(' · '),
    '',
    ...markdownTable(
      ['goal', ...(several ? ['subject'] : []), 'median', 'range', 'must', 'aim', 'verdict'],
      report.measures.map(({ name, subject, median: value, samples, goal, unit: ownUnit = '', verdict: result }) => {
        const { must = '–', aim = '–', unit = ownUnit } = goal ?? {}
        const shown = `**${figure(value)}${unit === '×' ? '×' : ` ${unit}`}**`
        const cells = [name, ...(several ? [subject] : []), shown, range(samples), String(must), String(aim)]
        return [...cells, result === 'missed' ? '**missed**' : result]
      }),
    ),
    '',
    'Made of (medians):',
    '',
    ...report.measures.flatMap(({ name, subject, details }) => {
      const parts = Object.entries(details).map(([label, value]) => `${label.trim()} ${figure(value)}`)
      return parts.length === 0 ? [] : [`- ${name}${several ? ` (${subject})` : ''}: ${parts.join(' · ')}`]
    }),
    '',
    ...(report.against.length === 0
      ? []
      : markdownTable(
          ['CPU of the working tree, divided by that of the other commit', 'component', 'commit', 'median', 'range'],
          report.against.map(({ name, subject, component, ratios }) => [
            name,
            component,
            subject,
            `**${figure(median(ratios))}×**`,
            range(ratios),
          ]),
        )),
    '',
  ]
  return lines.join('\n')
}

/** Writes the JSON and the table; resolves with the path without its extension. */
export async function writeReport(report: Report): Promise<string> {
  await mkdir(RESULTS, { recursive: true })
  const path = join(RESULTS, report.at.replaceAll(':', '-').slice(0, 19))
  await writeFile(`${path}.json`, `${JSON.stringify(report, undefined, 2)}\n`)
  await writeFile(`${path}.md`, markdown(report))
  return path
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const IDLE = new Set(['(idle)', '(program)'])

/** Returns the functions of a V8 CPU profile with the most self time, as lines of text. */
export function topSelfTime(profile: CpuProfile, entries = 25): string[] {
  const selfMicros = new Map<string, number>()
  const names = new Map(
    profile.nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const place = url.replace(/^.*\/(?=(?:node_modules|packages|apps|tools)\/)/, '')
      const name = functionName === '' ? '(anonymous)' : functionName
      return [id, place === '' ? name : `${name}  ${place}:${lineNumber + 1}`] as const
    }),
  )
  let busy = 0
  for (const [i, sample] of profile.samples.entries()) {
    const name = names.get(sample) ?? '(unknown)'
    const micros = profile.timeDeltas[i] ?? 0
    if (!IDLE.has(name)) busy += micros
    selfMicros.set(name, (selfMicros.get(name) ?? 0) + micros)
  }
  const top = [...selfMicros].filter(([name]) => !IDLE.has(name)).toSorted(([, a], [, b]) => b - a)
  return [
    `busy in JavaScript, natives called by it and garbage collection: ${(busy / 1e6).toFixed(2)} s; (program) is excluded`,
    ...top.slice(0, entries).map(([name, micros]) => `${((micros / busy) * 100).toFixed(1).padStart(5)} %  ${name}`),
  ]
}

/** Reads every profile below a folder, one for each thread, and returns the hottest functions of each. */
export async function describeProfiles(folder: string): Promise<string> {
  const parts: string[] = []
  for (const name of (await readdir(folder, { recursive: true })).toSorted()) {
    if (!name.endsWith('.cpuprofile')) continue
    const profile = JSON.parse(await readFile(join(folder, name), 'utf8')) as CpuProfile
    parts.push([`── ${join(folder, name)}`, ...topSelfTime(profile), ''].join('\n'))
  }
  return parts.join('\n')
}
