const TEXTS = /^(text\/|image\/svg\+xml$|application\/(json|xml|(x-)?yaml|toml|sql|javascript|typescript|x-sh)$)/

/** Whether bytes of that type are UTF-8 text, which every model can read. */
export function isTextType(media_type: string): boolean {
	return TEXTS.test(media_type)
}
