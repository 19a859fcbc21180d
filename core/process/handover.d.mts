/** See handover.mjs. */
export const root: string
/** Node's flags for the gateway's process. */
export const gatewayFlags: string[]
/** Where compiled code is kept between starts. */
export const compileCache: string
export function pinnedNode(): string
/** Returns the exit code if the command ran as a child process; otherwise never returns. */
export function replaceBy(command: string, args: string[], options?: { cwd?: string }): Promise<number>
