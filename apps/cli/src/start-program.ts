/** A program that runs in this process until it is told to end; it answers its exit code. */
type Start = (
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
) => Promise<number | void>;

/** `bulwark server …`: a replica of the control plane. Its flags are its own. */
export async function startServer(...given: Parameters<Start>): Promise<number> {
  const program: { readonly runServer?: Start } = await import('@bulwark/control-plane');
  return (await program.runServer?.(...given)) ?? 0;
}

/** `bulwark agent …`: a sidecar. Its flags are its own. */
export async function startAgent(...given: Parameters<Start>): Promise<number> {
  const { runSidecar } = await import('@bulwark/sidecar');
  return runSidecar(...given);
}
