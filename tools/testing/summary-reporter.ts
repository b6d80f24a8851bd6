import type { Reporter, TestModule } from 'vitest/node'

/** What the tests of a package need beside the package, for those who run them without. */
const NEEDS: Readonly<Record<string, string>> = {
  '@signalbox/engine-nats': 'nats-server is not installed; on Debian `apt-get install nats-server` brings it',
}

/** Ends a run with one line that people and CI can read alike: `N passed, N failed`. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0
    let skipped = 0
    const needy = new Map<string, number>()
    // An error outside any test, or a file that does not load, fails the run without a failed test: count it.
    let failed = unhandledErrors.length
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1
      let skippedHere = 0
      let total = 0
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        total += 1
        if (state === 'passed') passed += 1
        else if (state === 'failed') failed += 1
        else skippedHere += 1
      }
      skipped += skippedHere
      const { name } = module.project
      if (total > 0 && skippedHere === total && name in NEEDS) needy.set(name, (needy.get(name) ?? 0) + total)
    }
    const lines = [...needy].map(([name, count]) => `skipped ${count} tests of ${name}: ${NEEDS[name]}`)
    lines.push(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
    process.once('exit', () => process.stdout.write(`${lines.join('\n')}\n`))
  }
}
