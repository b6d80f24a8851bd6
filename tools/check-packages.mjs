// What a user of npm gets must work: every published package is packed, linted, and held against its budgets, and connector-mcp is installed from its
// tarball in an empty folder outside the workspace, where a host of its own answers the official MCP client. Nothing in that folder may be native code.
// With --write-budgets the sizes measured now become the budgets.
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

import { formatMessage } from 'publint/utils'
import { publint } from 'publint'

import { compareWithBudgets, measure, writeBudgets } from './check-packages-budgets.mjs'
import { typeProblems } from './check-packages-types.mjs'

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'signalbox-packages-'))

function npm(args, cwd) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Packs a package and returns the tarball's path. */
function pack(packageFolder) {
  const [{ filename, files }] = Object.values(
    JSON.parse(npm(['pack', '--json', '--pack-destination', folder], packageFolder)),
  )
  const stray = files
    .map(({ path }) => path)
    .filter((path) => /(^|\/)(test|out-tsc)\/|\.tsbuildinfo$|\.test\./.test(path))
  if (stray.length > 0) throw new Error(`${packageFolder} packs files that nobody needs: ${stray.join(', ')}`)
  return join(folder, filename)
}

try {
  const tarballs = {}
  for (const manifestPath of globSync('{packages,apps}/*/package.json', { cwd: root })
    .sort()
    .map((path) => join(root, path))) {
    const manifest = JSON.parse(readFileSync(manifestPath, 'utf8'))
    if (manifest.private) continue
    tarballs[manifest.name] = pack(dirname(manifestPath))
    const { messages } = await publint({ pkgDir: dirname(manifestPath), pack: 'npm', strict: true })
    const findings = messages
      .filter(({ code }) => code !== 'USE_TYPE')
      .map((message) => formatMessage(message, manifest))
    findings.push(...(await typeProblems(tarballs[manifest.name])))
    if (findings.length > 0) throw new Error(`${manifest.name}: ${findings.join('; ')}`)
  }

  const host = join(folder, 'host')
  mkdirSync(host)
  const own = ['@signalbox/broker-core', '@signalbox/http-kit', '@signalbox/connector-mcp'].map(
    (name) => tarballs[name],
  )
  writeFileSync(join(host, 'package.json'), '{"private": true, "type": "module"}\n')
  npm(['install', '--no-audit', '--no-fund', '--loglevel=error', ...own], host)
  const native = readdirSync(join(host, 'node_modules'), { recursive: true }).filter((path) =>
    String(path).endsWith('.node'),
  )
  if (native.length > 0) throw new Error(`connector-mcp brings native code: ${native.join(', ')}`)
  cpSync(join(root, 'tools/check-packages-host.mjs'), join(host, 'host.mjs'))
  process.stdout.write(execFileSync(process.execPath, ['host.mjs'], { cwd: host, encoding: 'utf8', timeout: 60_000 }))

  const installed = join(folder, 'server')
  mkdirSync(installed)
  writeFileSync(join(installed, 'package.json'), '{"private": true}\n')
  npm(['install', '--no-audit', '--no-fund', '--loglevel=error', ...Object.values(tarballs)], installed)
  const version = execFileSync(join(installed, 'node_modules/.bin/signalbox'), ['--version'], {
    encoding: 'utf8',
    timeout: 60_000,
  })

  const measured = Object.fromEntries(
    Object.entries(tarballs).map(([name, tarball]) => [name, measure(name, statSync(tarball).size, installed)]),
  )
  if (process.argv.includes('--write-budgets')) writeBudgets(measured)
  const over = compareWithBudgets(measured)
  if (over.length > 0) {
    throw new Error(
      `${over.join('; ')}. Make it smaller, or raise the budget: node tools/check-packages.mjs --write-budgets`,
    )
  }
  console.log(
    `packages: ${Object.keys(tarballs).length} pack cleanly; signalbox installed elsewhere says ${version.trim()}`,
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
