// A browser that a test drives as a person does: chromedriver's HTTP protocol (W3C WebDriver) by node's
// fetch.
import {spawn, spawnSync} from 'node:child_process';
import {writeFileSync} from 'node:fs';

const elementKey = 'element-6066-11e4-a52e-4f735466cecf';
const keys = {
  ArrowLeft: '\ue012',
  ArrowUp: '\ue013',
  ArrowRight: '\ue014',
  ArrowDown: '\ue015',
  Home: '\ue011',
  End: '\ue010',
  Enter: '\ue007',
  Escape: '\ue00c',
  Tab: '\ue004',
  Space: ' ',
  PageUp: '\ue00e',
  PageDown: '\ue00f',
  Shift: '\ue008'
};

/** What is missing here to run a browser, or '' for nothing. */
export function missing() {
  const programs = ['chromium', 'chromedriver'];
  const absent = programs.filter((program) => spawnSync(program, ['--version']).status !== 0);
  return absent.length ? `needs ${absent.join(' and ')} (apt-get install chromium chromium-driver)` : '';
}

/** Starts chromedriver on a free port; resolves with {url, stop}. */
function startDriver() {
  const driver = spawn('chromedriver', ['--port=0'], {stdio: ['ignore', 'pipe', 'inherit']});
  return new Promise((resolve, reject) => {
    let said = '';
    driver.on('exit', (code) => reject(new Error(`chromedriver ended (${code}): ${said}`)));
    driver.stdout.on('data', (data) => {
      said += data;
      const found = /started successfully on port (\d+)/.exec(said);
      if (found) resolve({url: `http://127.0.0.1:${found[1]}`, stop: () => driver.kill()});
    });
  });
}

export class Browser {
  /** options: width, height, dark, downloads (a folder). */
  static async start(options = {}) {
    const browser = new Browser();
    browser.driver = await startDriver();
    const args = [
      '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
      `--window-size=${options.width || 1280},${options.height || 900}`
    ];
    const prefs = options.downloads ? {'download.default_directory': options.downloads} : {};
    const session = await browser.call('POST', '/session', {
      capabilities: {
        alwaysMatch: {
          browserName: 'chrome',
          'goog:chromeOptions': {args, prefs},
          'goog:loggingPrefs': {browser: 'ALL'}
        }
      }
    });
    browser.session = `/session/${session.sessionId}`;
    await browser.resize(options.width || 1280, options.height || 900);
    await browser.dark(Boolean(options.dark));
    return browser;
  }

  async call(method, path, body) {
    const answer = await fetch(
        this.driver.url + path, {method, body: method === 'POST' ? JSON.stringify(body || {}) : undefined});
    const {value} = await answer.json();
    if (value && value.error) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
    return value;
  }

  post(path, body) { return this.call('POST', this.session + path, body); }
  devtools(cmd, params) { return this.post('/goog/cdp/execute', {cmd, params}); }

  async stop() {
    try {
      await this.call('DELETE', this.session);
    } finally {
      this.driver.stop();
    }
  }

  /** The size of what the page sees, whatever the window's frame takes. */
  resize(width, height) {
    return this.devtools(
        'Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: 1, mobile: false});
  }

  dark(on) {
    const features = [{name: 'prefers-color-scheme', value: on ? 'dark' : 'light'}];
    return this.devtools('Emulation.setEmulatedMedia', {features});
  }

  open(url) { return this.post('/url', {url}); }
  back() { return this.post('/back'); }
  url() { return this.call('GET', `${this.session}/url`); }

  /** What the script `return ...` gives in the page; a promise is awaited. */
  run(script, ...args) {
    return this.post('/execute/async', {
      script: `const done = arguments[arguments.length - 1];
      Promise.resolve((function () { ${script} }).apply(null, arguments))
        .then(done, (error) => done('error: ' + error));`,
      args
    });
  }

  async find(selector) {
    const found = await this.post('/element', {using: 'css selector', value: selector});
    return found[elementKey];
  }

  /** Clicks the element's middle; one that is covered or not seen is an error, as for a person. */
  async click(selector) { return this.post(`/element/${await this.find(selector)}/click`); }

  /** Clicks at a part of the element's width and height. */
  async clickAt(selector, across, down) {
    const box = await this.run(
        `const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'nearest'});
      const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height];`,
        selector);
    const at = {x: Math.floor(box[0] + across * box[2]), y: Math.floor(box[1] + down * box[3])};
    await this.pointer([
      {type: 'pointerMove', duration: 0, ...at}, {type: 'pointerDown', button: 0},
      {type: 'pointerUp', button: 0}
    ]);
  }

  pointer(actions) {
    const mouse = {type: 'pointer', id: 'mouse', parameters: {pointerType: 'mouse'}, actions};
    return this.post('/actions', {actions: [mouse]});
  }

  /** Presses keys by their names or letters, one after the other. */
  press(...names) {
    const actions =
        names.flatMap((name) => ['keyDown', 'keyUp'].map((type) => ({type, value: keys[name] || name})));
    return this.post('/actions', {actions: [{type: 'key', id: 'keys', actions}]});
  }

  async type(selector, text) { return this.post(`/element/${await this.find(selector)}/value`, {text}); }

  /** The text that a person reads in the first element. */
  text(selector) {
    return this.run(
        `const e = document.querySelector(arguments[0]); return e ? e.innerText : null;`, selector);
  }

  texts(selector) {
    return this.run(`return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText);`, selector);
  }

  count(selector) { return this.run(`return document.querySelectorAll(arguments[0]).length;`, selector); }

  /** Waits until the script gives something true, and gives it. */
  async wait(script, what = script, seconds = 20) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
      const value = await this.run(script);
      if (value && !String(value).startsWith('error: ')) return value;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`waited ${seconds} s in vain for ${what}`);
  }

  async screenshot(path) {
    writeFileSync(path, Buffer.from(await this.call('GET', `${this.session}/screenshot`), 'base64'));
  }

  /** What the page's script complained about. */
  async complaints() {
    const lines = await this.post('/se/log', {type: 'browser'});
    return lines.filter((line) => line.level === 'SEVERE').map((line) => line.message);
  }
}
