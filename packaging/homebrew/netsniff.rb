# The formula of Homebrew on Linux, for a tap. packaging/release.sh fills in what stands between at signs, and writes it to
# target/packages/netsniff.rb.
class Netsniff < Formula
  desc "Network traffic analyser whose records tell whether they can be believed"
  homepage "https://github.com/netsniff/netsniff"
  url "https://github.com/netsniff/netsniff/releases/download/v@VERSION@/netsniff-@VERSION@-@MACHINE@-linux.tar.gz"
  version "@VERSION@"
  sha256 "@SHA256@"
  license any_of: ["Apache-2.0", "MIT"]

  depends_on arch: :@ARCH@
  depends_on :linux

  def install
    bin.install "usr/bin/netsniff"
    man1.install Dir["usr/share/man/man1/*"]
    bash_completion.install "usr/share/bash-completion/completions/netsniff"
    zsh_completion.install "usr/share/zsh/vendor-completions/_netsniff"
    fish_completion.install "usr/share/fish/vendor_completions.d/netsniff.fish"
    doc.install Dir["usr/share/doc/netsniff/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/netsniff --version")
    system bin/"netsniff", "protocols"
  end
end
