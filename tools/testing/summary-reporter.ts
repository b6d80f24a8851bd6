import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'

import { REQUIREMENTS } from '../requirements/index.ts'
import type { FinishedTest } from '../requirements/proof.ts'
import { missingHere, unproven } from '../requirements/proof.ts'
import type { Requirement } from '../requirements/requirement.ts'

/** The programs outside npm that the tests of a folder need, for users who run them without. */
const NEEDS: Readonly<Record<string, string>> = {
  'packages/engine-nats': 'nats-server is not installed; on Debian `apt-get install nats-server` brings it',
}

/**
 * Ends a run with one line for people and CI: `N passed, N failed`. Before it are the tests that passed only when they were
 * repeated (`--retry`).
 */
export default class SummaryReporter implements Reporter {
  readonly #requirements: readonly Requirement[]
  #vitest: Vitest | undefined

  /** `requirements` are those that a full run must show. */
  constructor({ requirements = REQUIREMENTS }: { readonly requirements?: readonly Requirement[] } = {}) {
    this.#requirements = requirements
  }

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  async onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): Promise<void> {
    let passed = 0
    let skipped = 0
    const needy = new Map<string, number>()
    const tests: FinishedTest[] = []
    const repeated: string[] = []
    // An error outside any test, or a file that does not load, fails the run without a failed test: count it.
    let failed = unhandledErrors.length
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1
      let skippedHere = 0
      let total = 0
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        tests.push({ names: namesOf(test), state })
        total += 1
        if (test.diagnostic()?.flaky === true) repeated.push(`passed only when repeated: ${test.fullName}`)
        if (state === 'passed') passed += 1
        else if (state === 'failed') failed += 1
        else skippedHere += 1
      }
      skipped += skippedHere
      const folder = Object.keys(NEEDS).find((name) => module.moduleId.includes(`/${name}/`))
      if (folder !== undefined && skippedHere === total) needy.set(folder, (needy.get(folder) ?? 0) + total)
    }
    const lines = [...needy].map(([folder, count]) => `skipped ${count} tests of ${folder}: ${NEEDS[folder]}`)
    if (this.#vitest !== undefined && (await isFullRun(this.#vitest, modules))) {
      const problems = unproven(this.#requirements, tests, missingHere())
      lines.push(...problems)
      failed += problems.length
    }
    if (failed > 0) process.exitCode = 1
    lines.push(...repeated, `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
    process.once('exit', () => process.stdout.write(`${lines.join('\n')}\n`))
  }
}

/** Returns the name of a test and those of the groups around it. */
function namesOf(test: TestCase): readonly string[] {
  const names = [test.name]
  for (let { parent } = test; parent.type === 'suite'; { parent } = parent) names.push(parent.name)
  return names
}

/** Returns true if every test of every file was in the run: no filter of projects, files, names or tags. */
async function isFullRun(vitest: Vitest, modules: readonly TestModule[]): Promise<boolean> {
  const { project, testNamePattern, tagsFilter } = vitest.config
  if (project.length > 0 || testNamePattern !== undefined || (tagsFilter?.length ?? 0) > 0) return false
  const ran = new Set(modules.map((module) => `${module.project.name} ${module.moduleId}`))
  const all = await vitest.globTestSpecifications()
  return all.every((specification) => ran.has(`${specification.project.name} ${specification.moduleId}`))
}
