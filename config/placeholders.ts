/** Values that were meant to be replaced: `$NAME` of a shell, `%NAME%`, `{{NAME}}`, `<your-key>`. */
import { isSecretName } from './hidden.ts'
import type { Problem } from './problems.ts'
import type { Tree } from './tree.ts'

/** Not `%C3%A9`, which is percent-encoded, or `<|end|>`, which is a token of a model. */
const placeholder = String.raw`\$[A-Za-z_]\w*|%[A-Za-z_]\w*%(?![0-9A-F]{2})|\{\{[^{}]*\}\}|<[^<>|]+>`
const wholeSecret = new RegExp(`^(?:(?:Basic|Bearer) )?(?:${placeholder})$`, 'i')
/** The whole user or password, since a password may contain such characters, or a part of the host or port. A path may contain such characters, too. */
const inAddress = new RegExp(
	`^[a-z]+://(?:(?:[^/?#@:]*:)?(?:${placeholder})(?::[^/?#@]*)?@|(?:[^/?#]*@)?[^/?#@]*(?:${placeholder})(?![^/?#]*@))`,
	'i',
)
/** Sections whose settings have names that the operator or a plugin chose, such as `plugins.tokenizer`. */
const named: ReadonlySet<string | undefined> = new Set(['plugins', 'providers'])

const message =
	'looks like a placeholder, but is used unchanged; to refer to the environment variable NAME, write ${NAME}'

/** A warning for each secret and each address in the file that looks like a placeholder. Values of variables are not checked. */
export function placeholderWarnings(tree: Tree): Problem[] {
	return find(tree.value, []).map((path) => ({
		path: tree.written(path),
		message,
		where: tree.locate(path, 'value'),
	}))

	function find(value: unknown, path: readonly string[]): string[] {
		const name = path.join('.')
		if (typeof value === 'string') {
			const settings = named.has(path[0]) ? path.slice(2) : path
			const isSecret = settings.some((part) => isSecretName(part) || part === 'headers') && wholeSecret.test(value)
			return !tree.replaced.has(name) && (isSecret || inAddress.test(value)) ? [name] : []
		}
		if (typeof value !== 'object' || value === null) return []
		return Object.entries(value).flatMap(([key, inner]) => find(inner, [...path, key]))
	}
}
