// Runs the command line as `npm start` does. A server runs on free ports, and stops when it is ready.
import { spawn } from 'node:child_process'
import { join } from 'node:path'

const main = join(import.meta.dirname, '../../apps/server/scripts/start.js')
const child = spawn(process.execPath, ['--conditions=@signalbox/source', main, ...process.argv.slice(2)], {
  env: { ...process.env, HTTP_PORT: '0', API_PORT: '0' },
  stdio: ['inherit', 'pipe', 'inherit'],
})
child.stdout.setEncoding('utf8').on('data', (text: string) => {
  process.stdout.write(text)
  if (text.includes('"signalbox ready"')) child.kill('SIGTERM')
})
child.once('exit', (code) => {
  process.exitCode = code ?? 1
})
