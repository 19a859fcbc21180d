/** Checks that are made before the body of a request arrives, and again once it is there. */
import type { Request } from '@hapi/hapi'

type Check = () => Promise<void>

interface Kept {
	afterBody?: Check
}

/** `check` is called once the body is there, before the route does anything. It throws to refuse the request. */
export function checkAfterBody({ plugins }: Request, check: Check): void {
	;(plugins as Kept).afterBody = check
}

export function checkAfterBodyOf({ plugins }: Request): Check | undefined {
	return (plugins as Kept).afterBody
}
