import { table } from '@signalbox/testkit/figures'
import * as fc from 'fast-check'

import type { Finding, OpenTarget, Target } from './target.ts'
import { findingOf, signatureOf, storeFinding } from './target.ts'

interface FuzzOptions {
  readonly targets: readonly Target[]
  readonly milliseconds: number
  readonly seed: number
  /** The folder for findings. */
  readonly out: string
  readonly log: (line: string) => void
}

interface FoundInput {
  readonly finding: Finding
  readonly file: string
}

interface TargetReport {
  readonly target: string
  readonly inputs: number
  readonly seconds: number
  readonly findings: readonly FoundInput[]
}

/** The number of inputs between two checks of the clock and the event loop. */
const BATCH = 500

/** The time limit of the search for a smaller input, in milliseconds. */
const SHRINK_MS = 20_000

/** Gives every target its share of the time. Targets run in sequence. */
export async function fuzz({ targets, milliseconds, seed, out, log }: FuzzOptions): Promise<readonly TargetReport[]> {
  const weights = targets.reduce((sum, { weight }) => sum + weight, 0)
  const reports: TargetReport[] = []
  for (const target of targets) {
    const report = await fuzzTarget(target, (milliseconds * target.weight) / weights, seed, out, log)
    log(`${report.target}: ${report.inputs} inputs, ${report.findings.length} findings`)
    reports.push(report)
  }
  return reports
}

async function fuzzTarget(
  target: Target,
  milliseconds: number,
  seed: number,
  out: string,
  log: (line: string) => void,
): Promise<TargetReport> {
  const known = new Set<string>()
  const findings: FoundInput[] = []
  const report = (finding: Finding, input: unknown): void => {
    const signature = signatureOf(target.name, finding)
    if (known.has(signature)) return
    known.add(signature)
    const stored = { target: target.name, name: finding.message, kind: finding.kind, seed, input }
    const file = storeFinding(out, stored, signature)
    findings.push({ finding, file })
    log(`${target.name}: ${finding.kind}: ${finding.message.slice(0, 300)} (${file})`)
  }
  await using open = await target.open().catch((error: unknown) => {
    report(findingOf(error), null)
    return undefined
  })
  if (open === undefined) return { target: target.name, inputs: 0, seconds: 0, findings }

  // The clock starts here, because a server needs a second or more to start.
  const startedAt = performance.now()
  const deadline = startedAt + milliseconds
  let inputs = 0
  let last: unknown = null
  let gone = false
  // Each target takes an input at least, however long a busy machine takes to open it.
  for (let batch = 0; !gone && (batch === 0 || performance.now() < deadline); batch++) {
    const search = new Search(open, target.name, known, deadline)
    await fc.check(
      fc.asyncProperty(target.input, (input) => search.check(input)),
      { seed: (seed + Math.imul(batch, 0x9e37_79b1)) | 0, numRuns: BATCH },
    )
    inputs += search.inputs
    last = search.last
    if (search.found !== undefined) report(search.found.finding, search.found.input)
    gone = search.found?.finding.kind === 'gone'
    // One tick of the event loop, so that signals are handled.
    await new Promise(setImmediate)
  }
  try {
    if (!gone) await open.settle?.()
  } catch (error) {
    report(findingOf(error), last)
  }
  return { target: target.name, inputs, seconds: (performance.now() - startedAt) / 1000, findings }
}

/** Runs one batch, up to the first new finding, and then searches for the smallest input with the same finding. */
class Search {
  found: { readonly finding: Finding; readonly input: unknown } | undefined
  last: unknown = null
  inputs = 0
  readonly #target: OpenTarget
  readonly #name: string
  readonly #known: ReadonlySet<string>
  #deadline: number
  #signature: string | undefined

  constructor(target: OpenTarget, name: string, known: ReadonlySet<string>, deadline: number) {
    this.#target = target
    this.#name = name
    this.#known = known
    this.#deadline = deadline
  }

  async check(input: unknown): Promise<void> {
    if (this.inputs > 0 && performance.now() > this.#deadline) return
    if (this.found?.finding.kind === 'gone') return
    if (this.found === undefined) this.inputs++
    this.last = input
    try {
      await this.#target.check(input)
    } catch (error) {
      const finding = findingOf(error)
      const signature = signatureOf(this.#name, finding)
      if (this.#known.has(signature) || (this.#signature !== undefined && signature !== this.#signature)) return
      if (this.#signature === undefined) this.#deadline = performance.now() + SHRINK_MS
      this.#signature = signature
      this.found = { finding, input }
      throw finding
    }
  }
}

/** Returns the table at the end of a run: target, inputs, seconds, findings. */
export function summary(reports: readonly TargetReport[]): string {
  const total: TargetReport = {
    target: 'total',
    inputs: reports.reduce((sum, { inputs }) => sum + inputs, 0),
    seconds: reports.reduce((sum, { seconds }) => sum + seconds, 0),
    findings: reports.flatMap(({ findings }) => findings),
  }
  const rows = [...reports, total].map(({ target, inputs, seconds, findings }) => [
    target,
    String(inputs),
    seconds.toFixed(1),
    String(findings.length),
  ])
  const files = total.findings.map(
    ({ finding, file }) => `${finding.kind}: ${finding.message.slice(0, 200)}\n  ${file}`,
  )
  return `${[...table([['target', 'inputs', 'seconds', 'findings'], ...rows]), ...files].join('\n')}\n`
}
