// Checks the packages as a user of npm gets them: packs and lints every published package and compares it with its
// budget. Installs connector-mcp from its tarball in an empty folder outside the workspace, where a host answers the
// workspace's official MCP client. That folder may contain neither native code nor the MCP SDK.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
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
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { formatMessage } from 'publint/utils'
import { publint } from 'publint'

import { CORE_TOOL_NAMES } from '../packages/testkit/src/mcp-tools.ts'

// The output of child processes is read as data. Some hosts force colors, even for a number.
delete process.env['FORCE_COLOR']

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'signalbox-packages-'))

const run = promisify(execFile)

async function npm(args, cwd) {
  const { stdout } = await run('npm', args, { cwd, maxBuffer: 100e6 })
  return stdout
}

/** Packs packages, and returns the tarball's path of each by its name. */
async function pack(packageFolders) {
  const packed = Object.values(
    JSON.parse(await npm(['pack', '--json', '--pack-destination', folder, ...packageFolders], root)),
  )
  for (const { name, files } of packed) {
    const stray = files
      .map(({ path }) => path)
      .filter((path) => /(^|\/)(test|out-tsc)\/|\.tsbuildinfo$|\.test\./.test(path))
    if (stray.length > 0) throw new Error(`${name} packs needless files: ${stray.join(', ')}`)
  }
  return Object.fromEntries(packed.map(({ name, filename }) => [name, join(folder, filename)]))
}

/** Packages are ESM only: without `exports` support, and from CommonJS before Node 20.19, they cannot be loaded at all. */
const UNSUPPORTED = new Set(['node10', 'node16-cjs'])

/** Returns a line for each problem of the types as TypeScript users resolve them; none for a clean package. */
async function typeProblems(tarball) {
  const { types, problems } = await checkPackage(createPackageFromTarballData(tarball))
  if (types === false) return ['the package has no types']
  return problems
    .filter(({ resolutionKind }) => !UNSUPPORTED.has(resolutionKind))
    .map(({ kind, entrypoint, resolutionKind }) => [kind, entrypoint, resolutionKind].filter(Boolean).join(' '))
}

/** The packages of a host that offers tools. */
const HOST_PACKAGES = ['@signalbox/broker-core', '@signalbox/http-kit', '@signalbox/connector-mcp']

/** The packages whose declarations need no types of a storage library. */
const ENGINE_PACKAGES = ['@signalbox/broker-core', '@signalbox/engine-embedded']

/** The forms of `module` and `moduleResolution` that users of ES modules have. */
const MODULES = [
  ['node16', 'node16'],
  ['nodenext', 'nodenext'],
  ['esnext', 'bundler'],
]

/**
 * Compiles a program that imports the main entries of packages in a folder without another package, and checks their
 * declarations too.
 */
async function checkTypesWithout(absent, cwd, names) {
  if (existsSync(join(cwd, 'node_modules', absent))) throw new Error(`${absent} is installed in ${cwd}`)
  const imports = names.map((name, i) => `import * as part${i} from '${name}'`)
  const parts = names.map((_, i) => `part${i}`)
  writeFileSync(join(cwd, 'consumer.mts'), `${imports.join('\n')}\nexport const all = [${parts.join(', ')}]\n`)
  const types = ['--lib', 'es2024,esnext.disposable', '--types', 'node']
  const roots = ['--typeRoots', join(root, 'node_modules/@types')]
  const compiler = join(root, 'node_modules/@typescript/native/bin/tsc')
  for (const [module, resolution] of MODULES) {
    const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2024']
    const form = ['--module', module, '--moduleResolution', resolution]
    try {
      await run(process.execPath, [compiler, ...options, ...form, ...types, ...roots, 'consumer.mts'], { cwd })
    } catch (error) {
      throw new Error(`${names.join(', ')} with ${form.join(' ')}:\n${error.stdout}`, { cause: error })
    }
  }
}

/** Calls the host in a folder with the official client, and returns how many tools it has. */
async function callHost(host) {
  const child = spawn(process.execPath, ['host.mjs'], {
    cwd: host,
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 60_000,
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const { value: port } = await lines.next()
  assert.ok(port, 'the host did not start')
  const client = new Client({ name: 'packages-check', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)))
  const { tools } = await client.listTools()
  assert.deepEqual(
    tools.map(({ name }) => name),
    CORE_TOOL_NAMES,
  )
  const result = await client.callTool({ name: 'events_publish', arguments: { channel: 'greetings', body: 'hello' } })
  assert.equal(result.isError, false)
  await client.close()
  child.stdin.end()
  const { value: published } = await lines.next()
  assert.deepEqual(JSON.parse(published), [{ channel: 'greetings', body: 'hello' }])
  return tools.length
}

/** Runs the demo of the command in a folder until its console answers, and ends it as Ctrl-C does. Returns the seconds of the start. */
async function runDemo(installed) {
  const start = performance.now()
  const command = join(installed, 'node_modules/.bin/signalbox')
  const child = spawn(command, ['demo', '--port=0', '--console-port=0'], {
    cwd: installed,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000,
  })
  const ended = once(child, 'exit')
  let url
  for await (const line of createInterface({ input: child.stdout })) {
    url ??= /Console: (\S+)/.exec(line)?.[1]
    if (line.startsWith('Ctrl-C')) break
  }
  const page = await fetch(url)
  assert.match(await page.text(), /<title>/)
  const seconds = (performance.now() - start) / 1_000
  child.kill('SIGINT')
  assert.deepEqual(await ended, [0, null])
  return seconds
}

/** Returns a line for each package that is larger than its limit in package-budgets.json, packed and in KiB. */
function overBudget(tarballs) {
  const budgets = JSON.parse(readFileSync(join(root, 'tools/package-budgets.json'), 'utf8'))
  const problems = Object.entries(tarballs).flatMap(([name, tarball]) => {
    const kib = Math.ceil(statSync(tarball).size / 1024)
    console.log(`${name.padEnd(32)} ${kib} of ${budgets[name]} KiB packed`)
    if (budgets[name] === undefined) return [`${name} has no budget`]
    return kib > budgets[name] ? [`${name} has ${kib} KiB packed; at most ${budgets[name]} are allowed`] : []
  })
  const gone = Object.keys(budgets).filter((name) => tarballs[name] === undefined)
  return [...problems, ...gone.map((name) => `${name} has a budget, but is not published: remove the budget`)]
}

async function lint(manifest, tarballPath) {
  const tarball = new Uint8Array(readFileSync(tarballPath))
  const { messages } = await publint({ pack: { tarball: tarball.buffer }, strict: true })
  const findings = messages.filter(({ code }) => code !== 'USE_TYPE').map((message) => formatMessage(message, manifest))
  findings.push(...(await typeProblems(tarball)))
  if (findings.length > 0) throw new Error(`${manifest.name}: ${findings.join('; ')}`)
}

/** Installs packages in an empty folder, and returns it. */
async function install(name, manifest, tarballPaths) {
  const target = join(folder, name)
  mkdirSync(target)
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest)}\n`)
  await npm(['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', ...tarballPaths], target)
  return target
}

async function checkHost(tarballs) {
  const own = HOST_PACKAGES.map((name) => tarballs[name])
  const host = await install('host', { private: true, type: 'module' }, own)
  const native = readdirSync(join(host, 'node_modules'), { recursive: true }).filter((path) =>
    String(path).endsWith('.node'),
  )
  if (native.length > 0) throw new Error(`connector-mcp brings native code: ${native.join(', ')}`)
  const sdk = readdirSync(join(host, 'node_modules')).filter((name) => name === '@modelcontextprotocol')
  if (sdk.length > 0) throw new Error('connector-mcp brings the MCP SDK')
  await checkTypesWithout('fastify', host, HOST_PACKAGES)
  cpSync(join(root, 'tools/check-packages-host.mjs'), join(host, 'host.mjs'))
  const tools = await callHost(host)
  console.log(
    `packages: connector-mcp installed elsewhere, without the MCP SDK, lists ${tools} tools and publishes an event`,
  )
}

async function checkServer(tarballs) {
  const installed = await install('server', { private: true }, Object.values(tarballs))
  await checkTypesWithout('@types/better-sqlite3', installed, ENGINE_PACKAGES)
  const version = execFileSync(join(installed, 'node_modules/.bin/signalbox'), ['--version'], {
    encoding: 'utf8',
    timeout: 60_000,
  })

  const seconds = await runDemo(installed)
  console.log(`packages: the console of the installed demo answers after ${seconds.toFixed(1)} s`)
  return version.trim()
}

try {
  const published = globSync('{packages,apps}/*/package.json', { cwd: root })
    .sort()
    .map((path) => ({ path: `./${dirname(path)}`, manifest: JSON.parse(readFileSync(join(root, path), 'utf8')) }))
    .filter(({ manifest }) => !manifest.private)
  const tarballs = await pack(published.map(({ path }) => path))
  const over = overBudget(tarballs)
  if (over.length > 0) throw new Error(`${over.join('; ')}. Make it smaller, or raise its line in package-budgets.json`)
  const lintAll = async () => {
    for (const { manifest } of published) await lint(manifest, tarballs[manifest.name])
  }
  // All end before the folder is removed, also if one fails.
  const checks = await Promise.allSettled([checkServer(tarballs), checkHost(tarballs), lintAll()])
  for (const { reason } of checks) if (reason !== undefined) throw reason
  const version = checks[0].value
  console.log(`packages: ${Object.keys(tarballs).length} pack cleanly; signalbox installed elsewhere says ${version}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
