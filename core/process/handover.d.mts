/** See handover.mjs. */
export const root: string
/** Of Node, for the gateway's process. */
export const gatewayFlags: string[]
/** Where compiled code is kept between starts. */
export const compileCache: string
export function pinnedNode(): string
/** Returns the exit code, where it returns. */
export function replaceBy(command: string, args: string[], options?: { cwd?: string }): Promise<number>
