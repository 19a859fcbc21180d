/**
 * True for exactly one Host header. With two, a proxy may use one of them and the gateway the other. Also true without raw
 * headers: then a plugin made the request with `server.inject`.
 */
export function hasOneHost({ rawHeaders }: { rawHeaders?: readonly string[] }): boolean {
	if (!rawHeaders) return true
	let hosts = 0
	for (let at = 0; at < rawHeaders.length; at += 2) {
		const name = rawHeaders[at] as string
		if (name.length === 4 && name.toLowerCase() === 'host') hosts++
	}
	return hosts === 1
}
