const secretName = /key|token|secret|passw|credential|cookie|authorization/i
/** `https://user:password@host` */
const urlWithPassword = /:\/\/[^\s/@:]*:[^\s/@]+@/
const HIDDEN = '(hidden)'

/** Whether a setting with this name contains a key, a token or a similar secret. */
export function isSecretName(name: string): boolean {
	return secretName.test(name)
}

/** Whether to hide a text that is the value of a setting with this name. */
export function isSecretText(text: string, name: string | undefined): boolean {
	return (name !== undefined && isSecretName(name)) || urlWithPassword.test(text)
}

/** Settings to show or store: texts under the name of a secret are hidden, since they may come from the environment. */
export function withoutSecrets(value: unknown, name?: string): unknown {
	if (typeof value === 'string') return isSecretText(value, name) ? HIDDEN : value
	if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, name))
	if (typeof value !== 'object' || value === null) return value
	const isHandle = Object.keys(value).join() === 'secret'
	return isHandle
		? value
		: Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutSecrets(inner, key)]))
}
