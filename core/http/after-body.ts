/** What is decided before the body of a request has come, and must still hold once it has. */
import type { Request } from '@hapi/hapi'

type Check = () => Promise<void>

interface Kept {
	afterBody?: Check
}

/** `check` is called once the body is there, before the route does anything, and throws where it must not. */
export function checkAfterBody({ plugins }: Request, check: Check): void {
	;(plugins as Kept).afterBody = check
}

/** Undefined where nothing is to be checked. */
export function checkAfterBodyOf({ plugins }: Request): Check | undefined {
	return (plugins as Kept).afterBody
}
