/**
 * Runs in the browser, on pages of another origin than the gateway: every way in which a page can make a browser send a request. Each
 * function sends one to `url`, and resolves to the result that the page can observe, or at once if it can observe none. `window.`
 * precedes globals that the linter forbids in the gateway.
 */
const ways = {
	/** A page can observe their results. */
	visible: {
		img: (url) => element('img', { src: url }),
		'img lazy srcset': (url) => element('img', { srcset: `${url} 1x` }),
		'img crossorigin': (url) => element('img', { crossOrigin: 'use-credentials', src: url }),
		'img redirect': (url) => element('img', { src: redirect(url) }),
		'svg image': (url) => inSvg('image', url),
		'input image': (url) => element('input', { type: 'image', src: url }),
		'css import': (url) => element('style', { textContent: `@import url("${url}")` }),
		font: (url) => observed(new FontFace('f', `url("${url}")`).load()),
		stylesheet: (url) => element('link', { rel: 'stylesheet', href: url }),
		'preload as image': (url) => element('link', { rel: 'preload', as: 'image', href: url }),
		'preload as fetch': (url) => element('link', { rel: 'preload', as: 'fetch', crossOrigin: 'anonymous', href: url }),
		modulepreload: (url) => element('link', { rel: 'modulepreload', href: url }),
		prefetch: (url) => element('link', { rel: 'prefetch', href: url }),
		'prefetch as document': (url) => element('link', { rel: 'prefetch', as: 'document', href: url }),
		script: (url) => element('script', { src: url }),
		'script module': (url) => element('script', { type: 'module', src: url }),
		import: (url) => observed(import(url)),
		video: (url) => media('video', url),
		audio: (url) => media('audio', url),
		object: (url) => element('object', { data: url }),
		embed: (url) => element('embed', { src: url }),
		fetch: (url) => observed(window.fetch(url)),
		'fetch no-cors': (url) => observed(window.fetch(url, { mode: 'no-cors', credentials: 'include' })),
		'fetch same-origin': (url) => observed(window.fetch(url, { mode: 'same-origin' })),
		'fetch cors with credentials': (url) => observed(window.fetch(url, { credentials: 'include' })),
		'fetch redirect': (url) => observed(window.fetch(redirect(url), { mode: 'no-cors' })),
		'fetch keepalive': (url) => observed(window.fetch(url, { mode: 'no-cors', keepalive: true })),
		'fetch no-cors post': (url) => observed(window.fetch(url, { mode: 'no-cors', method: 'POST', body })),
		'fetch no-cors post without a body': (url) => observed(window.fetch(url, { mode: 'no-cors', method: 'POST' })),
		'fetch post json': (url) =>
			observed(window.fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })),
		'fetch delete': (url) => observed(window.fetch(url, { method: 'DELETE' })),
		'fetch with a header': (url) => observed(window.fetch(url, { headers: { authorization: 'Bearer x' } })),
		'fetch to loopback': (url) => observed(window.fetch(url, { mode: 'no-cors', targetAddressSpace: 'loopback' })),
		XMLHttpRequest: (url) => request('GET', url),
		'XMLHttpRequest post': (url) => request('POST', url),
		EventSource: (url) => listen(new window.EventSource(url)),
		'EventSource with credentials': (url) => listen(new window.EventSource(url, { withCredentials: true })),
		WebSocket: (url) => listen(new window.WebSocket(url.replace('http:', 'ws:').replace('/chat/stream', '/chat/ws'))),
		worker: (url) => listen(new Worker(url)),
		'shared worker': (url) => listen(new SharedWorker(url)),
		'fetch in a worker': (url) => inWorker(`fetch("${url}", { mode: "no-cors" })`),
		'importScripts in a worker': (url) => inWorker(`importScripts("${url}")`),
		'EventSource in a worker': (url) =>
			inWorker(
				`new Promise((done) => { const s = new EventSource("${url}"); s.onopen = s.onerror = ({ type }) => { s.close(); done(type) } })`,
			),
		'fetch in a service worker': async (url) => inServiceWorker(url),
		worklet: (url) => observed(CSS.paintWorklet.addModule(url)),
	},
	/** A page cannot observe their results. */
	silent: {
		'svg use': (url) => quiet(() => void inSvg('use', `${url}#x`)),
		'css background': (url) => quiet(() => style(`background: url("${url}")`)),
		'css cursor, mask, content': (url) =>
			quiet(() => style(`mask: url("${url}"); cursor: url("${url}"), auto; content: url("${url}")`)),
		icon: (url) => quiet(() => void element('link', { rel: 'icon', href: url })),
		manifest: (url) => quiet(() => void element('link', { rel: 'manifest', href: url })),
		'prerender link': (url) => quiet(() => void element('link', { rel: 'prerender', href: url })),
		'preconnect, dns-prefetch': (url) =>
			quiet(() => ['preconnect', 'dns-prefetch'].map((rel) => void element('link', { rel, href: url }))),
		'video poster': (url) => quiet(() => void element('video', { poster: url })),
		track: (url) => quiet(() => track(url)),
		ping: (url) => quiet(() => anchor({ href: '#', ping: url }).click()),
		'fetch later': (url) => quiet(() => window.fetchLater?.(url, { activateAfter: 0 })),
		beacon: (url) => quiet(() => navigator.sendBeacon(url)),
		'beacon with a body': (url) => quiet(() => navigator.sendBeacon(url, new Blob([body], { type: 'text/plain' }))),
	},
	/** In frames, which cost more. */
	frames: {
		iframe: (url) => element('iframe', { src: url }),
		'iframe sandbox': (url) => element('iframe', { sandbox: 'allow-scripts', src: url }),
		'iframe redirect': (url) => element('iframe', { src: redirect(url) }),
		'iframe srcdoc': (url) => element('iframe', { srcdoc: `<img src="${url}">` }),
		'iframe blob': (url) => element('iframe', { src: URL.createObjectURL(html(`<img src="${url}">`)) }),
		'iframe data': (url) => element('iframe', { src: `data:text/html,<img src="${encodeURIComponent(url)}">` }),
	},
	silentFrames: {
		'iframe location': (url) => quiet(() => (frame('').contentWindow.location = url)),
		'iframe meta refresh': (url) => element('iframe', { srcdoc: `<meta http-equiv="refresh" content="0;url=${url}">` }),
		'form get': (url) => quiet(() => form('get', url, frame('').name)),
		'form post': (url) => quiet(() => form('post', url, frame('').name)),
		'form post text/plain': (url) => quiet(() => form('post', url, frame('').name, 'text/plain')),
		'form post multipart': (url) => quiet(() => form('post', url, frame('').name, 'multipart/form-data')),
		'link clicked': (url) => quiet(() => anchor({ href: url, target: frame('').name }).click()),
		report: (url) => quiet(() => void element('iframe', { src: `/report?to=${encodeURIComponent(url)}` })),
		'link header': (url) => quiet(() => void element('iframe', { src: `/preload?to=${encodeURIComponent(url)}` })),
		'refresh header': (url) => quiet(() => void element('iframe', { src: `/refresh?to=${encodeURIComponent(url)}` })),
	},
	/** In windows, which cost most. A page cannot observe their results. */
	windows: {
		'window.open': (url) => quiet(() => window.open(url)),
		'window.open noopener': (url) => quiet(() => window.open(url, '_blank', 'noopener,noreferrer')),
		'link to a new window': (url) => quiet(() => anchor({ href: url, target: '_blank', rel: 'noreferrer' }).click()),
		'form get to a new window': (url) => quiet(() => form('get', url, '_blank')),
		'form post to a new window': (url) => quiet(() => form('post', url, '_blank')),
	},
}

const all = Object.assign({}, ...Object.values(ways))
const body = '{"prompt":"hello"}'
const redirect = (url) => `/go?to=${encodeURIComponent(url)}`
const html = (text) => new Blob([text], { type: 'text/html' })
let frames = 0

function element(name, properties) {
	const made = Object.assign(document.createElement(name), properties)
	return new Promise((resolve) => {
		made.onload = () => resolve(`load ${made.naturalWidth ?? ''}${sizeOf(made)}`)
		made.onerror = () => resolve('error')
		document.body.append(made)
	})
}

/** The number of windows in a frame, which is visible across origins. */
function sizeOf({ contentWindow }) {
	return contentWindow ? contentWindow.length : ''
}

function media(name, url) {
	const made = Object.assign(document.createElement(name), { preload: 'auto', src: url })
	return new Promise((resolve) => {
		made.onloadedmetadata = () => resolve('load')
		made.onerror = () => resolve(`error ${made.error.code} ${made.error.message}`)
		document.body.append(made)
	})
}

function track(url) {
	const made = Object.assign(document.createElement('track'), { default: true, src: url })
	const video = Object.assign(document.createElement('video'), { crossOrigin: 'anonymous' })
	video.append(made)
	document.body.append(video)
	made.track.mode = 'showing'
}

function inSvg(name, url) {
	const svg = 'http://www.w3.org/2000/svg'
	const [root, made] = [document.createElementNS(svg, 'svg'), document.createElementNS(svg, name)]
	made.setAttribute('href', url)
	root.append(made)
	document.body.append(root)
	return new Promise((resolve) => {
		made.onload = () => resolve('load')
		made.onerror = () => resolve('error')
	})
}

function style(text) {
	const made = document.createElement('p')
	made.style = text
	made.textContent = 'x'
	document.body.append(made)
}

function frame(src) {
	const made = Object.assign(document.createElement('iframe'), { src, name: `frame${++frames}` })
	document.body.append(made)
	return made
}

function form(method, url, target, enctype = 'application/x-www-form-urlencoded') {
	const { origin, pathname, search, searchParams } = new URL(url)
	const action = method === 'get' ? origin + pathname : origin + pathname + search
	const made = Object.assign(document.createElement('form'), { method, action, target, enctype })
	if (method === 'get')
		for (const [name, value] of searchParams)
			made.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }))
	document.body.append(made)
	made.submit()
}

function anchor(properties) {
	const made = Object.assign(document.createElement('a'), { textContent: 'x', ...properties })
	document.body.append(made)
	return made
}

function request(method, url) {
	const made = new XMLHttpRequest()
	made.open(method, url)
	return new Promise((resolve) => {
		made.onloadend = () => resolve(`${made.status} ${made.responseText.length}`)
		made.send()
	})
}

/** Resolves to the first event of an EventSource, WebSocket or worker. */
function listen(made) {
	return new Promise((resolve) => {
		const end = ({ type, code = '' }) => {
			made.close?.()
			made.terminate?.()
			resolve(`${type} ${code}`)
		}
		made.onopen = made.onmessage = made.onerror = made.onclose = end
	})
}

function inWorker(code) {
	const text = `(async () => { try { await ${code}; return "resolved" } catch (error) { return error.name } })().then(postMessage)`
	const worker = new Worker(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })))
	return new Promise((resolve) => {
		worker.onmessage = ({ data }) => resolve(data)
		worker.onerror = ({ message }) => resolve(message)
	})
}

async function inServiceWorker(url) {
	const { active, installing, waiting } = await navigator.serviceWorker.register('/service-worker.js')
	const { port1, port2 } = new MessageChannel()
	const answered = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)))
	;(active ?? waiting ?? installing).postMessage(url, [port2])
	return answered
}

async function observed(promise) {
	const found = await promise
	return `${found.type ?? ''} ${found.status ?? ''} ${found.ok ?? ''}`
}

function quiet(act) {
	act()
	return 'sent'
}

/** Removes the address, which the page knows. */
function plain(text, url) {
	return String(text)
		.replaceAll(url, 'URL')
		.replaceAll(/\?message=\S*/g, '')
}

/** `orders`: ways, each with its URL. Resolves to the observed results, in the same order. */
window.attempt = (orders) =>
	Promise.all(
		orders.map(async ([way, url]) => {
			try {
				return plain(await all[way](url), url)
			} catch (error) {
				return plain(`${error.name}: ${error.message}`, url)
			}
		}),
	)
performance.setResourceTimingBufferSize(10_000)
window.groups = Object.fromEntries(Object.entries(ways).map(([group, functions]) => [group, Object.keys(functions)]))
