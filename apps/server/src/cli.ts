import process from 'node:process'

/** Runs the command that the first word names, or the server. Each loads only its own code. */
export async function run(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const [first = ''] = args
  if (first === '' || first.startsWith('-')) {
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
