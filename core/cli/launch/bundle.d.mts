/** See bundle.mjs. */
export function runnable(program: string): Promise<string>
