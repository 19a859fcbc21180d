/** See handover.mjs. */
export const root: string
/** The gateway itself, as arguments of Node. */
export const gateway: string[]
/** Where compiled code is kept between starts. */
export const compileCache: string
export function pinnedNode(): string
/** Returns the exit code. */
export function run(command: string, args: string[], options?: { cwd?: string; ipc?: boolean }): Promise<number>
