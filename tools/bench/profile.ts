import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

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
