import type { Reporter, TestModule } from 'vitest/node'

/** Ends a run with one line that people and CI can read alike: `N passed, N failed`. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0
    let skipped = 0
    // An error outside any test, or a file that does not load, fails the run without a failed test: count it.
    let failed = unhandledErrors.length
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') passed += 1
        else if (state === 'failed') failed += 1
        else skipped += 1
      }
    }
    const line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`
    process.once('exit', () => process.stdout.write(line))
  }
}
