// Sizes of the published packages against the committed table (package-budgets.json).
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const TABLE = join(import.meta.dirname, 'package-budgets.json')

/** How far a figure may pass its budget, as a share of it. Third-party packages grow without a change of ours. */
const TOLERANCE = 0.1

const COLUMNS = [
  { key: 'packedKiB', title: 'packed KiB' },
  { key: 'installedKiB', title: 'installed KiB' },
  { key: 'packages', title: 'packages' },
]

/** The bytes of a folder's files, without what is installed below it. */
function folderBytes(folder) {
  let bytes = 0
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += entry.name === 'node_modules' ? 0 : folderBytes(path)
    else if (entry.isFile()) bytes += statSync(path).size
  }
  return bytes
}

function readManifest(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  } catch {
    return undefined
  }
}

/** Finds a dependency as Node does: in the nearest node_modules above the package that asks. */
function findInstalled(name, from, root) {
  for (let folder = from; folder.startsWith(root); folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name)
    if (readManifest(candidate) !== undefined) return candidate
  }
  return undefined
}

/** The folders of everything that installing a package brings, itself included. */
function closure(name, root) {
  const folders = new Set()
  const visit = (folder) => {
    if (folder === undefined || folders.has(folder)) return
    folders.add(folder)
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = readManifest(folder)
    const peers = Object.keys(peerDependencies ?? {}).filter((peer) => peerDependenciesMeta?.[peer]?.optional !== true)
    for (const needed of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
      visit(findInstalled(needed, folder, root))
    }
  }
  visit(findInstalled(name, root, root))
  return folders
}

/** Measures a package in a folder where all of ours are installed. `packages` counts what comes with it, itself not included. */
export function measure(name, packedBytes, root) {
  const folders = closure(name, root)
  const installedBytes = [...folders].reduce((sum, folder) => sum + folderBytes(folder), 0)
  return {
    packedKiB: Math.ceil(packedBytes / 1024),
    installedKiB: Math.ceil(installedBytes / 1024),
    packages: folders.size - 1,
  }
}

function describe(name, figures, budget) {
  const cells = COLUMNS.map(({ key }) => `${figures[key]} of ${budget?.[key] ?? '-'}`.padStart(16))
  return name.padEnd(32) + cells.join('')
}

/** Prints the table and returns a line for each figure that is over its budget. */
export function compareWithBudgets(measured) {
  const budgets = JSON.parse(readFileSync(TABLE, 'utf8'))
  const problems = []
  console.log('package'.padEnd(32) + COLUMNS.map(({ title }) => title.padStart(16)).join(''))
  for (const [name, figures] of Object.entries(measured)) {
    console.log(describe(name, figures, budgets[name]))
    if (budgets[name] === undefined) problems.push(`${name} has no budget`)
    for (const { key, title } of budgets[name] === undefined ? [] : COLUMNS) {
      const allowed = Math.floor(budgets[name][key] * (1 + TOLERANCE))
      if (figures[key] > allowed) problems.push(`${name}: ${title} is ${figures[key]}; at most ${allowed} is allowed`)
    }
  }
  for (const name of Object.keys(budgets)) {
    if (measured[name] === undefined) problems.push(`${name} has a budget and is not published`)
  }
  return problems
}

/** Makes what was measured the new budgets. */
export function writeBudgets(measured) {
  writeFileSync(TABLE, `${JSON.stringify(measured, undefined, 2)}\n`)
}
