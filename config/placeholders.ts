/** Values that were meant to be replaced: `$NAME` of a shell, `%NAME%`, `{{NAME}}`, `<your-key>`. */
import { isSecretName } from './hidden.ts'
import type { Problem } from './problems.ts'
import type { Tree } from './tree.ts'

const placeholder = String.raw`\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\{\{[^{}]*\}\}|<[^<>]+>`
const wholeSecret = new RegExp(`^(?:(?:Basic|Bearer) )?(?:${placeholder})$`, 'i')
/** In the user, host or port: a path may have such characters. */
const inAddress = new RegExp(`^[a-z]+://[^/?#]*(?:${placeholder})`, 'i')

const message =
	'looks like a placeholder, but is used as it stands; to refer to the environment variable NAME, write ${NAME}'

/** A warning for each secret and each address in the file that is a placeholder. Values that come from variables do not count. */
export function placeholderWarnings(tree: Tree): Problem[] {
	return find(tree.value, []).map((path) => ({
		path: tree.written(path),
		message,
		where: tree.locate(path, 'value'),
	}))

	function find(value: unknown, path: readonly string[]): string[] {
		const name = path.join('.')
		if (typeof value === 'string') {
			const isSecret = path.some((part) => isSecretName(part) || part === 'headers') && wholeSecret.test(value)
			return !tree.replaced.has(name) && (isSecret || inAddress.test(value)) ? [name] : []
		}
		if (typeof value !== 'object' || value === null) return []
		return Object.entries(value).flatMap(([key, inner]) => find(inner, [...path, key]))
	}
}
