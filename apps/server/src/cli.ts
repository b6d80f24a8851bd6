import process from 'node:process'

/** Options of commands that may come before the verb, such as `--url URL`. */
const BEFORE_VERB = /^--(?:url|api|token|context|ca-file|cert-file|key-file|json)(?:=|$)/

/** Runs the command that the first word names, or the server. Each loads only its own code. */
export async function run(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const [first = ''] = args
  if (args.length === 1 && (first === 'help' || first === 'version')) return run([`--${first}`], env)
  if (first === '' || (first.startsWith('-') && !BEFORE_VERB.test(first))) {
    const { runServer } = await import('./run-server.ts')
    await runServer(args, env)
    return
  }
  const [{ runCommand }, { processIo }] = await Promise.all([
    import('./commands/run-command.ts'),
    import('./commands/command-io.ts'),
  ])
  const code = await runCommand(args, processIo(env))
  // The bridge of `signalbox mcp` sets a code itself.
  if (code !== 0) process.exitCode = code
}
