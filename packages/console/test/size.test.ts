import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { buildPage } from '../src/build-page.ts'

const KIB = 1_024

/** Returns the scripts and styles that a file loads, by their names in `assets`. */
function loadedBy(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name)
}

/** Returns the scripts and styles that the start page needs before its first screen is complete. */
function firstScreen(folder: string): ReadonlySet<string> {
  const assets = join(folder, 'assets')
  const overview = readdirSync(assets).find((name) => /^overview-[\w-]+\.js$/.test(name))
  if (overview === undefined) throw new Error('the page has no script of the overview')
  const needed = new Set<string>()
  const add = (name: string): void => {
    if (needed.has(name)) return
    needed.add(name)
    if (!name.endsWith('.js')) return
    const text = readFileSync(join(assets, name), 'utf8')
    // Static imports; the styles of a screen are in the list that loads it.
    loadedBy(text, /(?:from|import)\s*["']\.\/([\w-]+\.js)["']/g).forEach(add)
  }
  loadedBy(readFileSync(join(folder, 'index.html'), 'utf8'), /assets\/([\w-]+\.(?:js|css))/g).forEach(add)
  add(overview)
  // Styles in separate files: those of the plots.
  for (const name of readdirSync(assets)) if (/^plot-[\w-]+\.css$/.test(name)) add(name)
  return needed
}

/** Returns the sum of the compressed sizes, in KiB. */
function compressed(folder: string, names: Iterable<string>): number {
  return [...names].reduce((sum, name) => sum + statSync(join(folder, 'assets', `${name}.br`)).size, 0) / KIB
}

test('console - the first screen needs at most 60 KiB of scripts and styles, all screens at most 150 KiB', async () => {
  const folder = await buildPage()
  const first = compressed(folder, firstScreen(folder))
  const all = compressed(
    folder,
    readdirSync(join(folder, 'assets')).filter((name) => /\.(?:js|css)$/.test(name)),
  )
  console.log(`page with brotli: ${first.toFixed(1)} KiB for the first screen, ${all.toFixed(1)} KiB in all`)
  expect(first).toBeLessThan(60)
  expect(all).toBeLessThan(150)
}, 120_000)
